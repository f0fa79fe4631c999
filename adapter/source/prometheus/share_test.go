package prometheus

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/source/sourcetest"
)

// crawling answers with a body that is large at once and then takes its time, until the request is given up.
func crawling(size int) http.RoundTripper {
	spaces := strings.Repeat(" ", size)
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader(spaces), slowly{r}, strings.NewReader(matrix(pod("a", 1))))
		return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: -1, Body: io.NopCloser(body)}, nil
	})
}

// slowly is a reader that has nothing to read until its request ends.
type slowly struct{ request *http.Request }

func (s slowly) Read([]byte) (int, error) {
	<-s.request.Context().Done()
	return 0, s.request.Context().Err()
}

// byHost sends each request to the server of its host, and all others to the last resort.
type byHost struct {
	known map[string]http.RoundTripper
	other http.RoundTripper
}

func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if known := b.known[r.URL.Host]; known != nil {
		return known.RoundTrip(r)
	}
	return b.other.RoundTrip(r)
}

// Namespaces whose servers send much, and then nothing, take memory from each other but not from a namespace that needs
// little, and no more than there is altogether, from however many addresses they come.
func TestSlowServersDoNotStarveOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A byte of an answer takes six of memory: an honest answer takes less than the third that is its
		// namespace's share, a hostile one more.
		const budget, size = 8 << 20, 640 << 10
		large := strings.Repeat(" ", 400<<10)
		honest := newServer(func(_ int, _ asked) (int, io.Reader, error) {
			return http.StatusOK, io.MultiReader(strings.NewReader(large),
				strings.NewReader(matrix(pod("a", 1, 2)))), nil
		})
		s := running(t, Options{MaxMemory: budget},
			byHost{map[string]http.RoundTripper{"prometheus:9090": honest}, crawling(size)})
		c := gauge()
		c.Interval, c.Window = 10*time.Second, 10*time.Second
		hostile := func(namespace string, addresses int) {
			for i := range addresses {
				slow := c
				slow.Address = fmt.Sprintf("http://slow-%s-%d:9090", namespace, i)
				name := types.NamespacedName{Namespace: namespace, Name: slow.Address}
				require.NoError(t, s.Set(name, slow, fleetOf("a"), newRecorder()))
			}
		}
		hostile("bank", 15)
		hostile("casino", 3)
		most := int64(0)
		pass := func(seconds int) {
			for range seconds {
				sourcetest.Pass(time.Second)
				most = max(most, s.connector.InUse())
			}
		}
		pass(5)
		sinks := make([]*recorder, 8)
		for i := range sinks {
			sinks[i] = newRecorder()
			own := gauge()
			own.Query = fmt.Sprint("load_", i)
			require.NoError(t, s.Set(key(own.Query), own, fleetOf("a"), sinks[i]))
		}
		pass(30)
		answered := 0
		for _, sink := range sinks {
			failed := 0
			for _, err := range sink.SourceErrors() {
				if err != "" {
					failed++
				}
			}
			if len(sink.of("a")) > 0 && failed == 0 {
				answered++
			}
		}
		t.Logf("%d of %d honest answers, %d MiB of %d at most", answered, len(sinks), most>>20, budget>>20)
		assert.Equal(t, len(sinks), answered)
		assert.LessOrEqual(t, most, int64(budget))
		assert.Greater(t, most, int64(budget)/2, "the others do fill it")
	})
}

// What is in excess of the memory for all answers is refused, and says so.
func TestAnAnswerLargerThanTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := saying(http.StatusOK, strings.Repeat(" ", 2<<20)+matrix(pod("a", 1)))
		s := running(t, Options{MaxMemory: 8 << 20}, server)
		sink := newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleetOf("a"), sink))
		sourcetest.Pass(time.Second)
		assert.Equal(
			t, address+": the answer would take more than the 8 MiB of memory for all answers; the query must select less",
			sink.LastSourceError())
		assert.Zero(t, s.connector.InUse())
	})
}

// A long window does not have a server read its whole past.
func TestTheSpanOfAQueryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), constant, "a"))
		s := running(t, Options{}, server)
		for i, interval := range []time.Duration{time.Second, time.Hour} {
			c := gauge()
			c.Query, c.Interval, c.Window = fmt.Sprint("load_", i), interval, 1000*time.Hour
			require.NoError(t, s.Set(key(c.Query), c, fleetOf("a"), newRecorder()))
		}
		sourcetest.Pass(5 * time.Minute)
		for _, q := range server.queries() {
			assert.LessOrEqual(t, q.span, 3*time.Hour)
		}
		assert.Equal(t, 3*time.Hour, server.queries()[0].span)
	})
}

// The queries of namespaces to one server that take as long as they may hold up none of another namespace.
func TestSlowQueriesHoldUpNoOtherNamespace(t *testing.T) {
	for name, hostile := range map[string][]string{
		"one namespace": {"bank"}, "several": {"bank", "casino", "den"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := byQuery{answering(growing(time.Now(), constant, "a")), crawling(10)}
				s := running(t, Options{}, server)
				for i := range 300 {
					slow := gauge()
					slow.Query = fmt.Sprint("slow_", i)
					of := types.NamespacedName{Namespace: hostile[i%len(hostile)], Name: slow.Query}
					require.NoError(t, s.Set(of, slow, fleetOf("a"), newRecorder()))
				}
				sourcetest.Pass(20 * time.Second)
				sink := newRecorder()
				require.NoError(t, s.Set(key("pm"), gauge(), fleetOf("a"), sink))
				sourcetest.Pass(3 * time.Second)
				for range 60 {
					sourcetest.Pass(time.Second)
					all := sink.of("a")
					require.NotEmpty(t, all)
					age := time.Since(time.UnixMilli(all[len(all)-1].T))
					require.LessOrEqual(t, age, 2*time.Second)
				}
				require.Empty(t, sink.LastSourceError())
			})
		})
	}
}

// byQuery sends slow queries to one server and others to another.
type byQuery struct{ quick, slow http.RoundTripper }

func (b byQuery) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	if strings.Contains(r.Form.Get("query"), "slow") {
		return b.slow.RoundTrip(r)
	}
	return b.quick.RoundTrip(r)
}

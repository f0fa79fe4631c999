package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

func constant(string, int) float64 { return 1 }

// inOrder asserts that samples are a number of seconds' ones, each once.
func inOrder(t *testing.T, samples []pipeline.Sample, n int, step time.Duration) {
	t.Helper()
	require.Len(t, samples, n)
	for i := 1; i < n; i++ {
		require.Equal(t, step.Milliseconds(), samples[i].T-samples[i-1].T, "sample %d", i)
	}
}

func TestFirstQueryCoversTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), constant, "a", "b"))
		s := running(t, Options{}, server)
		sink := newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleetOf("a", "b"), sink))
		sourcetest.Pass(10 * time.Second)
		spans := server.spans()
		require.GreaterOrEqual(t, len(spans), 10)
		assert.Equal(t, []int{12, 3, 3, 3}, spans[:4],
			"the window and two intervals; then since the last, and two intervals")
		asked := server.queries()
		for i := 2; i < len(asked); i++ {
			assert.Equal(t, time.Second, asked[i].at-asked[i-1].at)
		}
		inOrder(t, sink.of("a"), len(sink.of("b")), time.Second)
		assert.Len(t, sink.of("a"), 12+int((asked[len(asked)-1].at-asked[0].at)/time.Second))
		assert.Empty(t, sink.LastSourceError())
	})
}

func TestRatesOfCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resetting := func(_ string, second int) float64 {
			if second >= 5 {
				return 7 * float64(second-4) // reset between 4 and 5
			}
			return 100 + 2*float64(second)
		}
		server := answering(growing(time.Now(), resetting, "a"))
		s := running(t, Options{}, server)
		sink := newRecorder()
		c := gauge()
		c.Type = source.Counter
		require.NoError(t, s.Set(key("pm"), c, fleetOf("a"), sink))
		sourcetest.Pass(10 * time.Second)
		samples := sink.of("a")
		inOrder(t, samples, len(samples), time.Second)
		require.GreaterOrEqual(t, len(samples), 19)
		for _, x := range samples {
			want := 2.0
			if x.T >= server.began.Add(5*time.Second).UnixMilli() {
				want = 7
			}
			assert.Equal(t, want, x.V)
		}
	})
}

// Samples that are further apart than two intervals are requested as far back as needed, without alarm.
func TestSparseSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		server := answering(func() []fakeSeries {
			s := pod("a")
			for at := began.Add(-time.Minute); !at.After(time.Now()); at = at.Add(15 * time.Second) {
				s.samples = append(s.samples, pipeline.Sample{T: at.UnixMilli(), V: 1})
			}
			return []fakeSeries{s}
		})
		s := running(t, Options{}, server)
		sink := newRecorder()
		c := gauge()
		c.Window = time.Minute
		require.NoError(t, s.Set(key("pm"), c, fleetOf("a"), sink))
		sourcetest.Pass(time.Minute + 2*time.Second)
		assert.Equal(t, []int{62, 31, 31}, server.spans()[:3])
		inOrder(t, sink.of("a"), 9, 15*time.Second)
		assert.NotContains(t, strings.Join(sink.SourceErrors(), ""), "nothing")
		assert.Empty(t, sink.failure("a"))
	})
}

// A server that is asked less often than it scrapes becomes sparse: nothing is said before the
// whole window was requested.
func TestSamplesBecomeSparse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		server := answering(func() []fakeSeries {
			s := pod("a")
			for i := -20; i <= 200; i++ {
				at := began.Add(time.Duration(i) * time.Second)
				if !at.After(time.Now()) && (i <= 0 || i%20 == 0) {
					s.samples = append(s.samples, pipeline.Sample{T: at.UnixMilli(), V: 1})
				}
			}
			return []fakeSeries{s}
		})
		s := running(t, Options{}, server)
		sink := newRecorder()
		c := gauge()
		c.Window = time.Minute
		require.NoError(t, s.Set(key("pm"), c, fleetOf("a"), sink))
		sourcetest.Pass(90 * time.Second)
		assert.Len(t, slices.DeleteFunc(sink.of("a"), func(x pipeline.Sample) bool { return x.T <= began.UnixMilli() }),
			4)
		for _, trouble := range sink.SourceErrors() {
			require.Empty(t, trouble)
		}
		assert.Equal(t, 41, server.spans()[len(server.spans())-1], "twice the new spacing")
	})
}

func TestServerOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		up := answering(growing(began, constant, "a"))
		server := newServer(func(n int, q asked) (int, io.Reader, error) {
			if since := time.Since(began); since > 5*time.Second && since < 45*time.Second {
				return 0, nil, errors.New("connect: connection refused")
			}
			return up.answer(n, q)
		})
		registry := prometheus.NewRegistry()
		s := running(t, Options{Registerer: registry}, server)
		sink := newRecorder()
		c := gauge()
		c.Window = time.Minute
		require.NoError(t, s.Set(key("pm"), c, fleetOf("a"), sink))
		sourcetest.Pass(30 * time.Second)
		assert.Equal(t, "http://prometheus:9090: connect: connection refused", sink.LastSourceError())
		assert.InDelta(t, 20+5, len(sink.of("a")), 1)
		sourcetest.Pass(60 * time.Second)
		assert.Empty(t, sink.LastSourceError())
		inOrder(t, sink.of("a"), len(sink.of("a")), time.Second)
		assert.GreaterOrEqual(t, len(sink.of("a")), 20+89, "what was missed is made up for")
		failures := sourcetest.Gathered(t, registry, "foresail_prometheus_query_duration_seconds", "connection")
		assert.Greater(t, failures, 4.0)
		assert.Less(t, failures, 10.0, "it is asked ever less often")
		assert.Greater(t, sourcetest.Gathered(t, registry, "foresail_prometheus_query_duration_seconds", "success"),
			40.0)
	})
}

func TestRetriesAreSpread(t *testing.T) {
	for _, test := range []struct{ wait, interval, least time.Duration }{
		{1, 1, 1}, {2, 1, 1}, {4, 1, 2}, {30, 1, 15}, {60, 60, 60}, {100, 60, 60},
	} {
		assert.Equal(t, test.wait*time.Second, spread(test.wait*time.Second, test.interval*time.Second, 0), "%v", test)
		assert.Equal(t, test.least*time.Second, spread(test.wait*time.Second, test.interval*time.Second, 1), "%v", test)
	}
}

func TestGroupsAreSpreadOverTheirInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), constant, "a"))
		s := running(t, Options{}, server)
		const groups = 200
		for i := range groups {
			c := gauge()
			c.Interval, c.Window, c.Query = 10*time.Second, time.Minute, fmt.Sprint("load_", i)
			require.NoError(t, s.Set(key(c.Query), c, fleetOf("a"), newRecorder()))
		}
		sourcetest.Pass(2 * time.Second)
		first := map[string]bool{}
		for _, q := range server.queries() {
			name, _, _ := strings.Cut(q.query, "\n")
			first[name] = first[name] || q.span == 80*time.Second
		}
		assert.Equal(t, groups, trues(first), "the first answers do not wait for the interval")
		sourcetest.Pass(10 * time.Second)
		before := len(server.queries())
		sourcetest.Pass(10 * time.Second)
		asked := server.queries()[before:]
		require.Len(t, asked, groups)
		perSecond := map[int]int{}
		for _, q := range asked {
			perSecond[int(q.at/time.Second)]++
		}
		for _, n := range perSecond {
			assert.InDelta(t, groups/10, n, 15)
		}
	})
}

func trues(x map[string]bool) int {
	n := 0
	for _, is := range x {
		if is {
			n++
		}
	}
	return n
}

func TestManyShareAQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), func(_ string, second int) float64 { return float64(second) }, "a", "b",
			"c"))
		registry := prometheus.NewRegistry()
		s := running(t, Options{Registerer: registry}, server)
		one, two, three := newRecorder(), newRecorder(), newRecorder()
		counter := gauge()
		counter.Type = source.Counter
		require.NoError(t, s.Set(key("one"), gauge(), fleetOf("a"), one))
		require.NoError(t, s.Set(key("two"), counter, fleetOf("b", "c"), two))
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, s.groups, 1)
		assert.LessOrEqual(t, len(server.queries()), 6)
		assert.Equal(t, []int{12, 3, 3}, server.spans()[:3])
		inOrder(t, one.of("a"), len(one.of("a")), time.Second)
		assert.Equal(t, []float64{1, 1, 1}, two.values("b")[:3], "rates")
		assert.Equal(t, two.of("b"), two.of("c"))
		assert.Empty(t, one.of("b"))

		before := len(server.queries())
		long := gauge()
		long.Window = 15 * time.Second
		require.NoError(t, s.Set(key("three"), long, fleetOf("a"), three))
		sourcetest.Pass(3 * time.Second)
		wide := slices.DeleteFunc(server.spans()[before:], func(span int) bool { return span == 3 })
		assert.Equal(t, []int{17}, wide, "one query reaches back for the newcomer")
		assert.GreaterOrEqual(t, len(three.of("a")), 17)
		inOrder(t, three.of("a"), len(three.of("a")), time.Second)
		inOrder(t, one.of("a"), len(one.of("a")), time.Second)
		assert.Equal(t, two.values("b")[0], two.values("b")[len(two.of("b"))-1])

		other := gauge()
		other.PodLabel = "kubernetes_pod_name"
		require.NoError(t, s.Set(key("three"), other, fleetOf("a"), three))
		assert.Len(t, s.groups, 2)
		for _, name := range []string{"one", "two", "three", "three"} {
			s.Remove(key(name))
		}
		assert.Empty(t, s.groups)
		assert.Empty(t, s.servers)
		asked := len(server.queries())
		sourcetest.Pass(10 * time.Second)
		assert.Len(t, server.queries(), asked)
	})
}

func TestSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), constant, "a"))
		s := running(t, Options{}, server)
		fleet, sink := fleetOf("a"), newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleet, sink))
		sourcetest.Pass(5 * time.Second)
		c := gauge()
		c.Address, c.Query = "HTTP://prometheus:9090/", "load "
		require.NoError(t, s.Set(key("pm"), c, fleet, sink))
		sourcetest.Pass(5 * time.Second)
		inOrder(t, sink.of("a"), len(sink.of("a")), time.Second)
		assert.Equal(t, 1, fleet.Watched(), "the same changes nothing")
		asked := len(server.queries())
		for _, window := range []time.Duration{5 * time.Second, 20 * time.Second, 15 * time.Second} {
			// it follows the startup time
			c.Window = window
			require.NoError(t, s.Set(key("pm"), c, fleet, sink))
			sourcetest.Pass(5 * time.Second)
		}
		wide := slices.DeleteFunc(server.spans()[asked:], func(span int) bool { return span == 3 })
		assert.Equal(t, []int{22}, wide, "only a longer window is queried")

		next, moved := newRecorder(), fleetOf("a")
		require.NoError(t, s.Set(key("pm"), c, moved, next))
		before := sink.Calls()
		assert.Zero(t, fleet.Watching())
		sourcetest.Pass(5 * time.Second)
		assert.Equal(t, before, sink.Calls())
		assert.GreaterOrEqual(t, len(next.of("a")), 15, "another sink gets the window again")

		c.Query = ""
		require.Error(t, s.Set(key("pm"), c, moved, next))
		before = next.Calls()
		sourcetest.Pass(5 * time.Second)
		assert.Greater(t, next.Calls(), before, "what is refused changes nothing")
	})
}

// One server that hangs holds up neither the queries to others nor the end of a subscription.
func TestHangingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), constant, "a"))
		registry := prometheus.NewRegistry()
		s := running(t, Options{Registerer: registry, Concurrency: 2},
			hosts{"prometheus:9090": server, "slow:9090": func() *fakeServer {
				slow := answering(growing(time.Now(), constant, "a"))
				slow.hang = time.Hour
				return slow
			}()})
		var stuck []*recorder
		for i := range 10 {
			c := gauge()
			c.Address, c.Query = "http://slow:9090", fmt.Sprint("load_", i)
			stuck = append(stuck, newRecorder())
			require.NoError(t, s.Set(key(c.Query), c, fleetOf("a"), stuck[i]))
		}
		quick := newRecorder()
		require.NoError(t, s.Set(key("quick"), gauge(), fleetOf("a"), quick))
		sourcetest.Pass(30 * time.Second)
		assert.GreaterOrEqual(t, len(quick.of("a")), 12+28)
		told := 0
		for _, sink := range stuck {
			if sink.Calls() > 0 {
				told++
				assert.Equal(t, "http://slow:9090: no complete answer within 5s", sink.LastSourceError())
			}
		}
		assert.Equal(t, 10, told)
		assert.LessOrEqual(t, sourcetest.Gathered(t, registry, "foresail_prometheus_query_duration_seconds", "timeout"),
			12.0, "two at a time, 5 s each")

		calls := 0
		for i, sink := range stuck {
			s.Remove(key(fmt.Sprint("load_", i)))
			calls += sink.Calls()
		}
		sourcetest.Pass(time.Minute)
		for _, sink := range stuck {
			calls -= sink.Calls()
		}
		assert.Zero(t, calls, "no one hears of what is given up")
		assert.Len(t, s.servers, 1)
	})
}

// What is under way for several is not given up when one leaves, who hears of it no more.
func TestRemoveDuringAQuery(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := saying(status, matrix(pod("a", 1, 2)))
				server.hang = 4 * time.Second
				s := running(t, Options{}, server)
				leaving, staying := newRecorder(), newRecorder()
				require.NoError(t, s.Set(key("leaving"), gauge(), fleetOf("a"), leaving))
				require.NoError(t, s.Set(key("staying"), gauge(), fleetOf("a"), staying))
				sourcetest.Pass(2 * time.Second)
				s.Remove(key("leaving"))
				sourcetest.Pass(4 * time.Second)
				assert.Zero(t, leaving.Calls())
				assert.NotZero(t, staying.Calls())
			})
		})
	}
}

func TestNewSubscriptionsDoNotHurryAFailingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := saying(http.StatusServiceUnavailable, "")
		s := running(t, Options{}, server)
		require.NoError(t, s.Set(key("one"), gauge(), fleetOf("a"), newRecorder()))
		sourcetest.Pass(time.Minute)
		before := len(server.queries())
		for i := range 20 {
			require.NoError(t, s.Set(key(fmt.Sprint(i)), gauge(), fleetOf("a"), newRecorder()))
			sourcetest.Pass(500 * time.Millisecond)
		}
		assert.LessOrEqual(t, len(server.queries()), before+1)
	})
}

// hosts is a transport that has a server for each host.
type hosts map[string]*fakeServer

func (h hosts) RoundTrip(r *http.Request) (*http.Response, error) { return h[r.URL.Host].RoundTrip(r) }

func TestRunCancelsRunningQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), constant, "a"))
		server.hang = time.Hour
		registry := prometheus.NewRegistry()
		s := newSource(Options{Registerer: registry}.withDefaults(), server)
		sink := newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleetOf("a"), sink))
		sourcetest.Pass(5 * time.Second)
		assert.Empty(t, server.queries(), "not before Run")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		sourcetest.Pass(2 * time.Second)
		assert.Len(t, server.queries(), 1)
		cancel()
		require.NoError(t, <-done)
		assert.Zero(t, sink.Calls())
		assert.Equal(t, 1.0, sourcetest.Gathered(t, registry, "foresail_prometheus_query_duration_seconds",
			"cancelled"))
		require.NoError(t, s.Set(key("late"), gauge(), fleetOf("a"), sink))
		sourcetest.Pass(time.Minute)
		assert.Zero(t, sink.Calls())
	})
}

func TestTimeouts(t *testing.T) {
	for _, test := range []struct{ timeout, interval, want time.Duration }{
		{0, 1, 5}, {0, 4, 8}, {0, 60, 10}, {3, 1, 3}, {30, 10, 20},
	} {
		o := Options{Timeout: test.timeout * time.Second}.withDefaults()
		assert.Equal(t, test.want*time.Second, o.timeout(test.interval*time.Second), "%v", test)
	}
}

// Whatever is set and removed at once: sinks hear nothing after Remove, and everything ends.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), constant, "a", "b"))
		s := running(t, Options{}, server)
		var group sync.WaitGroup
		for worker := range 8 {
			group.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(worker)))
				for range 30 {
					c := gauge()
					c.Query = fmt.Sprint("load_", random.IntN(3))
					sink, name := newRecorder(), key(fmt.Sprint(worker))
					assert.NoError(t, s.Set(name, c, fleetOf("a", "b"), sink))
					<-time.After(time.Duration(random.IntN(3000)) * time.Millisecond)
					s.Remove(name)
					before := sink.Calls()
					<-time.After(time.Duration(random.IntN(1000)) * time.Millisecond)
					assert.Equal(t, before, sink.Calls())
				}
			})
		}
		group.Wait()
		assert.Empty(t, s.groups)
		assert.Empty(t, s.servers)
	})
}

package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

// running starts a source on a network, and ends it with the test's bubble.
func running(t *testing.T, o Options, w *network) *Source {
	t.Helper()
	s := newSource(o.withDefaults(), w)
	sourcetest.Run(t, s.Run)
	return s
}

func TestEachIsReadOncePerIntervalAtItsOwnPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods, rounds = 1000, 10
		w := newNetwork(answering("load 0.5\n"))
		s := running(t, Options{}, w)
		sink, fleet := newRecorder(), fleetOf(pods)
		s.Set(key("pm"), gauge(time.Second), fleet, sink)
		sourcetest.Pass(rounds * time.Second)

		perTenth := make([]int, 10)
		for _, i := range fleet.Active() {
			times := w.times(i.IP)
			require.Len(t, times, rounds, i.IP)
			for n := range times {
				drift := times[n] - times[0] - time.Duration(n)*time.Second
				require.Less(t, drift.Abs(), 2*tick, i.IP)
			}
			perTenth[times[0]/(100*time.Millisecond)]++
			require.Len(t, sink.Samples(i.ID), rounds)
			require.Equal(t, times[0].Milliseconds(), sink.Samples(i.ID)[0].T-w.began.UnixMilli())
		}
		for _, n := range perTenth {
			assert.InDelta(t, pods/10, n, 40, "spread over the interval")
		}
	})
}

// The readings carry the time at which the answer began.
func TestSampleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(func(string, int) (string, time.Duration,
			error) {
			return "load 0.5\n", 70 * time.Millisecond, nil
		})
		s := running(t, Options{}, w)
		sink := newRecorder()
		s.Set(key("pm"), gauge(time.Second), fleetOf(1), sink)
		sourcetest.Pass(1500 * time.Millisecond)
		want := w.began.Add(w.times("10.0.0.0")[0] + 70*time.Millisecond).UnixMilli()
		assert.Equal(t, pipeline.Sample{T: want, V: 0.5}, sink.Samples("uid-pod-0")[0])
	})
}

func TestCounterBecomesRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readings := []int{100, 110, 130, 5, 5}
		w := newNetwork(func(_ string, n int) (string, time.Duration, error) {
			return fmt.Sprintf("# TYPE load counter\nload %d\n", readings[min(n, len(readings)-1)]), 0, nil
		})
		s := running(t, Options{}, w)
		sink := newRecorder()
		c := gauge(2 * time.Second)
		c.Type = source.Counter
		s.Set(key("pm"), c, fleetOf(1), sink)
		sourcetest.Pass(10 * time.Second)
		var rates []float64
		for _, x := range sink.Samples("uid-pod-0") {
			rates = append(rates, x.V)
		}
		assert.InDeltaSlice(t, []float64{5, 10, 2.5, 0}, rates, 0.02)
	})
}

// TestAnswersThatAreLateAreNoLoad has a pod that serves ten requests a second answer one scrape after almost three
// seconds, with its count at the request, or at the answer.
func TestAnswersThatAreLateAreNoLoad(t *testing.T) {
	for _, interval := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second} {
		for _, ofAnswer := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := newNetwork(func(_ string, n int) (string, time.Duration, error) {
					delay := time.Millisecond
					if n%40 == 5 {
						delay = 2970 * time.Millisecond
					}
					counted := time.Since(began)
					if ofAnswer {
						counted += delay
					}
					return fmt.Sprintf("# TYPE load counter\nload %v\n", 10*counted.Seconds()), delay, nil
				})
				s := running(t, Options{Timeout: 3 * time.Second}, w)
				sink := newRecorder()
				c := gauge(interval)
				c.Type = source.Counter
				s.Set(key("pm"), c, fleetOf(1), sink)
				sourcetest.Pass(100 * interval)
				rates := sink.Values("uid-pod-0")
				assert.Greater(t, len(rates), 20)
				for _, v := range rates {
					require.InDelta(t, 10, v, 5.1, "interval %s", interval)
				}
			})
		}
	}
}

func TestSlowAndDeadPodsDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = 40
		fleet := fleetOf(pods)
		number := map[string]int{}
		for _, x := range fleet.Active() {
			n, err := strconv.Atoi(strings.TrimPrefix(x.ID, "uid-pod-"))
			require.NoError(t, err)
			number[x.IP] = n
		}
		w := newNetwork(func(host string, _ int) (string, time.Duration, error) {
			switch number[host] % 4 {
			case 0:
				return "", time.Hour, nil // never answers
			case 1:
				return "load 1\n", 900 * time.Millisecond, nil
			default:
				return "load 1\n", time.Millisecond, nil
			}
		})
		registry := prometheus.NewRegistry()
		s := running(t, Options{Concurrency: 8, Registerer: registry}, w)
		sink := newRecorder()
		s.Set(key("pm"), gauge(time.Second), fleet, sink)
		sourcetest.Pass(10 * time.Second) // in which it becomes known who is slow
		early := map[string]int{}
		for _, x := range fleet.Active() {
			early[x.ID] = len(sink.Samples(x.ID))
		}
		sourcetest.Pass(60 * time.Second)
		for i := range pods {
			id := fmt.Sprint("uid-pod-", i)
			switch i % 4 {
			case 0:
				assert.Empty(t, sink.Samples(id))
				assert.Greater(t, len(sink.Failures(id)), 3)
			case 1:
				assert.Greater(t, len(sink.Samples(id)), 6, "slow, but read")
			default:
				assert.Len(t, sink.Samples(id)[early[id]:], 60)
			}
		}
		assert.LessOrEqual(t, sourcetest.Gathered(t, registry, "foresail_scrapes_in_flight", ""), 8.0)
		assert.Greater(t, sourcetest.Gathered(t, registry, "foresail_scrape_duration_seconds", "timeout"), 30.0)
	})
}

func TestRunningScrapeReplacesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(func(string, int) (string, time.Duration,
			error) {
			return "load 1\n", 2500 * time.Millisecond, nil
		})
		registry := prometheus.NewRegistry()
		s := running(t, Options{Timeout: 4 * time.Second, Registerer: registry}, w)
		sink := newRecorder()
		s.Set(key("pm"), gauge(time.Second), fleetOf(1), sink)
		sourcetest.Pass(12 * time.Second)
		assert.Equal(t, []int{0, 3, 6, 9}, seconds(w.times("10.0.0.0")))
		assert.Equal(t, 8.0, sourcetest.Gathered(t, registry, "foresail_scrapes_skipped_total", ""))
		assert.Empty(t, sink.Failures("uid-pod-0"))
	})
}

// A scrape of a quick endpoint that turns out to be slow goes on in a slow slot, and starts again if none is free.
func TestSlowScrapeLeavesItsQuickSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(func(host string, n int) (string, time.Duration, error) {
			switch {
			case host == "10.0.0.0" && n%2 == 1, host == "10.0.0.1":
				return "load 1\n", 2 * time.Second, nil
			default:
				return "load 1\n", 0, nil
			}
		})
		registry := prometheus.NewRegistry()
		s := newSource(Options{Concurrency: 2, Timeout: 5 * time.Second, Registerer: registry}.withDefaults(), w)
		alternating, slow, quick := newEndpointOf(s, 0), newEndpointOf(s, 1), newEndpointOf(s, 2)
		s.beginScrape(t.Context(), alternating)
		synctest.Wait()
		s.beginScrape(t.Context(), alternating) // slow now
		s.beginScrape(t.Context(), quick)
		sourcetest.Pass(slowAfter - time.Millisecond)
		assert.Empty(t, w.times("10.0.0.2"), "the quick slot is taken")
		sourcetest.Pass(2 * time.Millisecond)
		assert.Len(t, w.times("10.0.0.2"), 1, "it is free for the next one")
		s.beginScrape(t.Context(), slow)
		sourcetest.Pass(slowAfter + time.Millisecond)
		assert.Equal(t, 1.0, sourcetest.Gathered(t, registry, "foresail_scrape_duration_seconds", "cancelled"),
			"no slow slot is free")
		s.beginScrape(t.Context(), slow)
		assert.Equal(t, 1.0, sourcetest.Gathered(t, registry, "foresail_scrapes_skipped_total", ""), "it waits for one")
		sourcetest.Pass(4 * time.Second)
		assert.Len(t, w.times("10.0.0.0"), 2)
		assert.Len(t, w.times("10.0.0.1"), 2)
		assert.Equal(t, 4.0, sourcetest.Gathered(t, registry, "foresail_scrape_duration_seconds", "success"))
		assert.Equal(t, 1.0, sourcetest.Gathered(t, registry, "foresail_scrape_duration_seconds", "cancelled"))
		for _, l := range []*namespaceLimiter{s.quick, s.slow, s.parsers} {
			assert.Zero(t, l.taken)
			assert.Empty(t, l.held)
			assert.Empty(t, l.waiting)
		}
	})
}

func newEndpointOf(s *Source, i int) *endpoint {
	x := instance(fmt.Sprint("pod-", i), fmt.Sprintf("10.0.0.%d", i))
	c := gauge(time.Second)
	return newEndpoint(locate(x, &c, false), s.options.UserAgent)
}

// An answer that is all there does not outlive its scrape either.
func TestTimeoutEndsAnAnswerThatKeepsComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(Options{Timeout: 3 * time.Second}.withDefaults(), endless{})
		sourcetest.Run(t, s.Run)
		sink := newRecorder()
		s.Set(key("pm"), gauge(time.Minute), fleetOf(1), sink)
		sourcetest.Pass(2 * time.Minute)
		assert.Equal(t, []string{"http://10.0.0.0:9090/metrics: no complete answer within 3s"},
			sink.Failures("uid-pod-0")[:1])
	})
}

// endless is a transport whose answers have a line each second, and do not end with their request.
type endless struct{}

func (endless) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: -1, Header: http.Header{},
		Body: io.NopCloser(endless{})}, nil
}

func (endless) Read(b []byte) (int, error) {
	time.Sleep(time.Second)
	return copy(b, "load 1\n"), nil
}

// While as many long answers are parsed as may be, others wait, and short ones do not.
func TestLongAnswersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := "load 1\n" + strings.Repeat("# comment\n", shortAnswer/10)
		w := newNetwork(func(host string, _ int) (string, time.Duration, error) {
			if host == "10.0.0.0" {
				return "load 1\n", 0, nil
			}
			return long, 0, nil
		})
		s := newSource(Options{}.withDefaults(), w)
		s.parsers = newNamespaceLimiter(1)
		sourcetest.Run(t, s.Run)
		parsed := &answer{parsers: s.parsers, endpoint: newEndpointOf(s, 250)}
		parsed.beginParsing()
		sink := newRecorder()
		s.Set(key("pm"), gauge(time.Second), fleetOf(10), sink)
		sourcetest.Pass(time.Minute)
		assert.Len(t, sink.Samples("uid-pod-0"), 60)
		assert.Equal(t, 60, sink.Calls())
		parsed.endParsing()
		synctest.Wait()
		assert.Equal(t, 69, sink.Calls())
	})
}

func TestTimeoutDefaultsToTheInterval(t *testing.T) {
	for _, test := range []struct {
		timeout time.Duration
		want    string
	}{{0, "2s"}, {700 * time.Millisecond, "700ms"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newNetwork(func(string, int) (string, time.Duration, error) { return "", time.Hour, nil })
			s := running(t, Options{Timeout: test.timeout}, w)
			sink := newRecorder()
			s.Set(key("pm"), gauge(2*time.Second), fleetOf(1), sink)
			sourcetest.Pass(5 * time.Second)
			require.NotEmpty(t, sink.Failures("uid-pod-0"))
			assert.Equal(t, "http://10.0.0.0:9090/metrics: no complete answer within "+test.want,
				sink.Failures("uid-pod-0")[0])
		})
	}
}

func TestFailingPodIsScrapedLessOften(t *testing.T) {
	refused := errors.New("connection refused")
	tests := map[string]struct {
		interval time.Duration
		options  Options
		recovers int // the request from which on it answers
		want     []int
	}{
		"5 s at most": {time.Second, Options{}, 99, []int{0, 1, 3, 7, 12, 17, 22}},
		"as the option has": {time.Second, Options{MaxBackoff: 2 * time.Second}, 99,
			[]int{0, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23}},
		"long intervals": {8 * time.Second, Options{}, 99, []int{0, 8, 16}},
		"one failure": {time.Second, Options{}, 1,
			[]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
		"until it answers": {time.Second, Options{}, 4,
			[]int{0, 1, 3, 7, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newNetwork(func(_ string, n int) (string, time.Duration, error) {
					if n >= test.recovers {
						return "load 1\n", 0, nil
					}
					return "", 0, refused
				})
				s := running(t, test.options, w)
				sink := newRecorder()
				s.Set(key("pm"), gauge(test.interval), fleetOf(1), sink)
				sourcetest.Pass(24 * time.Second)
				assert.Equal(t, test.want, seconds(w.times("10.0.0.0")))
				assert.Equal(t, "http://10.0.0.0:9090/metrics: connection refused", sink.Failures("uid-pod-0")[0])
			})
		})
	}
}

func TestReadersOfAnEndpointShareScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(answering("load 1\n# TYPE work counter\nwork 7\n"))
		registry := prometheus.NewRegistry()
		s := running(t, Options{Registerer: registry}, w)
		one, two, three := newRecorder(), newRecorder(), newRecorder()
		work := gauge(time.Second)
		work.Metric, work.Type, work.Port = "work", source.Counter, "metrics" // the same port by its name
		missing := gauge(time.Second)
		missing.Metric = "absent"
		s.Set(key("one"), gauge(time.Second), fleetOf(2), one)
		s.Set(key("two"), work, fleetOf(2), two)
		s.Set(key("three"), missing, fleetOf(1), three)
		sourcetest.Pass(10 * time.Second)
		assert.Len(t, w.times("10.0.0.0"), 10)
		assert.Len(t, one.Samples("uid-pod-0"), 10)
		assert.Len(t, two.Samples("uid-pod-0"), 9, "the first reading makes no rate")
		assert.Len(t, three.Failures("uid-pod-0"), 10)
		assert.Len(t, s.endpoints, 2)

		s.Remove(key("one"))
		sourcetest.Pass(10 * time.Second)
		assert.Len(t, one.Samples("uid-pod-0"), 10)
		assert.Len(t, two.Samples("uid-pod-0"), 19)
		assert.Len(t, w.times("10.0.0.0"), 20)

		other := gauge(5 * time.Second)
		s.Set(key("one"), other, fleetOf(2), one)
		sourcetest.Pass(10 * time.Second)
		assert.Len(t, one.Samples("uid-pod-0"), 12, "at its own interval")
		assert.Len(t, two.Samples("uid-pod-0"), 29)
	})
}

func TestInstancesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(answering("load 1\n"))
		s := running(t, Options{}, w)
		a, b := instance("a", "10.0.0.1"), instance("b", "10.0.0.2")
		fleet, sink := sourcetest.NewFleet(a), newRecorder()
		s.Set(key("pm"), gauge(time.Second), fleet, sink)
		sourcetest.Pass(5 * time.Second)
		fleet.Set(a, b)
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, sink.Samples(a.ID), 10)
		assert.Len(t, sink.Samples(b.ID), 5)
		fleet.Set(b)
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, w.times("10.0.0.1"), 10)
		b.IP = "10.0.0.3"
		fleet.Set(b)
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, w.times("10.0.0.2"), 10)
		assert.Len(t, w.times("10.0.0.3"), 5)
		assert.Len(t, sink.Samples(b.ID), 15)

		s.Remove(key("pm"))
		s.Remove(key("pm"))
		fleet.Set(a, b)
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, w.times("10.0.0.3"), 5)
		assert.Zero(t, fleet.Watching())
		assert.Empty(t, s.endpoints)
		assert.Empty(t, s.queue)
	})
}

// A scrape under way of an instance that ends is given up, and no one hears of it.
func TestEndOfAnInstanceCancelsItsScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(func(string, int) (string, time.Duration, error) { return "load 1\n", 10 * time.Second, nil })
		registry := prometheus.NewRegistry()
		s := running(t, Options{Timeout: time.Minute, Registerer: registry}, w)
		fleet, sink := fleetOf(1), newRecorder()
		s.Set(key("pm"), gauge(time.Second), fleet, sink)
		sourcetest.Pass(2 * time.Second)
		assert.Equal(t, 1.0, sourcetest.Gathered(t, registry, "foresail_scrapes_in_flight", ""))
		fleet.Set()
		synctest.Wait()
		assert.Zero(t, sourcetest.Gathered(t, registry, "foresail_scrapes_in_flight", ""))
		assert.Equal(t, 1.0, sourcetest.Gathered(t, registry, "foresail_scrape_duration_seconds", "cancelled"))
		sourcetest.Pass(time.Minute)
		assert.Zero(t, sink.Calls())
	})
}

func TestSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(answering("# TYPE load counter\nload 1\nother 2\n"))
		s := running(t, Options{}, w)
		fleet, sink := fleetOf(1), newRecorder()
		c := gauge(time.Second)
		c.Type = source.Counter
		s.Set(key("pm"), c, fleet, sink)
		sourcetest.Pass(5 * time.Second)
		s.Set(key("pm"), c, fleet, sink)
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, sink.Samples("uid-pod-0"), 9, "the same changes nothing: the counter goes on")
		assert.Equal(t, 1, fleet.Watched())

		c.Metric, c.Type = "other", source.Gauge
		s.Set(key("pm"), c, fleet, sink)
		sourcetest.Pass(5 * time.Second)
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14},
			seconds(w.times("10.0.0.0")), "the endpoint stays")
		assert.Equal(t, 2.0, sink.Samples("uid-pod-0")[13].V)

		next, moved := newRecorder(), fleetOf(2)
		s.Set(key("pm"), c, moved, next)
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, sink.Samples("uid-pod-0"), 14)
		assert.Len(t, next.Samples("uid-pod-0"), 5)
		assert.Len(t, next.Samples("uid-pod-1"), 5)
		assert.Zero(t, fleet.Watching())
	})
}

func TestUnreachablePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(answering("load 1\n"))
		registry := prometheus.NewRegistry()
		s := running(t, Options{Registerer: registry}, w)
		noIP, noPort, noPorts := instance("a", ""), instance("b", "10.0.0.2"), instance("c", "10.0.0.3")
		noPort.Ports = map[string]int32{"http": 80, "admin": 81}
		noPorts.Ports = nil
		fleet, sink := sourcetest.NewFleet(noIP, noPort, noPorts), newRecorder()
		c := gauge(time.Second)
		c.Port = "metrics"
		s.Set(key("pm"), c, fleet, sink)
		sourcetest.Pass(10 * time.Second)
		assert.Equal(t, "pod shop/a has no IP", sink.Failures("uid-a")[0])
		assert.Equal(t, `pod shop/b has no container port named "metrics": it has admin, http`,
			sink.Failures("uid-b")[0])
		assert.Equal(t, `pod shop/c has no container port named "metrics": it has none with a name`,
			sink.Failures("uid-c")[0])
		assert.Greater(t, len(sink.Failures("uid-a")), 3, "said again and again")
		assert.Greater(t, sourcetest.Gathered(t, registry, "foresail_scrape_duration_seconds", "address"), 9.0)

		fleet.Set(instance("a", "10.0.0.1"))
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, sink.Samples("uid-a"), 5)
	})
}

// A pod whose IP is the node's own, or where clouds keep credentials, is not asked, however its IP is written.
func TestPodsAtLocalAddressesAreNotScraped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for ip, want := range map[string]string{
			"127.0.0.1":                "loopback): it is not scraped",
			"::1":                      "loopback): it is not scraped",
			"::ffff:127.0.0.1":         "loopback): it is not scraped",
			"169.254.169.254":          "link-local): it is not scraped",
			"fe80::1":                  "link-local): it is not scraped",
			"fd00:ec2::254":            "cloud metadata): it is not scraped",
			"64:ff9b::169.254.169.254": "link-local): it is not scraped",
			"0.0.0.0":                  "unspecified): it is not scraped",
			"localhost":                "invalid): it is not scraped",
			"10.0.0.1":                 "",
			"fd12::1":                  "",
		} {
			for _, allowed := range []bool{false, true} {
				w, sink := newNetwork(answering("load 1\n")), newRecorder()
				s := running(t, Options{AllowLoopback: allowed}, w)
				s.Set(key("pm"), gauge(time.Second), sourcetest.NewFleet(instance("a", ip)), sink)
				sourcetest.Pass(time.Second)
				if want == "" || allowed && strings.HasPrefix(want, "loopback") {
					assert.Len(t, w.times(ip), 1, ip)
					assert.Empty(t, sink.Failures("uid-a"), ip)
					continue
				}
				assert.Empty(t, w.times(ip), ip)
				assert.Equal(t, []string{"pod shop/a has the IP " + ip + " (" + want}, sink.Failures("uid-a"))
			}
		}
	})
}

func TestScrapesSetBeforeRunAreNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(answering("load 1\n"))
		registry := prometheus.NewRegistry()
		s := newSource(Options{Registerer: registry}.withDefaults(), w)
		sink := newRecorder()
		s.Set(key("pm"), gauge(time.Second), fleetOf(50), sink)
		sourcetest.Pass(10 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		sourcetest.Pass(5 * time.Second)
		cancel()
		require.NoError(t, <-done)
		assert.Equal(t, 250, sink.Calls())
		assert.Zero(t, sourcetest.Gathered(t, registry, "foresail_scrapes_skipped_total", ""))
		sourcetest.Pass(5 * time.Second)
		assert.Equal(t, 250, sink.Calls(), "ended")
	})
}

func TestRunCancelsRunningScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(func(string, int) (string, time.Duration, error) { return "load 1\n", time.Hour, nil })
		s := newSource(Options{Concurrency: 4, Timeout: 2 * time.Hour}.withDefaults(), w)
		sink := newRecorder()
		s.Set(key("pm"), gauge(time.Second), fleetOf(20), sink)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		sourcetest.Pass(5 * time.Second)
		began := time.Now()
		cancel()
		require.NoError(t, <-done)
		assert.Zero(t, time.Since(began))
		assert.Zero(t, sink.Calls())
	})
}

// Behind a real tracker: pods are read from readiness to termination, and while their fleet is followed.
func TestFollowsATracker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(answering("load 1\n"))
		s := running(t, Options{}, w)
		tracker := podtracker.NewTracker(podtracker.Options{})
		fleet := tracker.Follow(key("pm"), "shop", labels.SelectorFromSet(labels.Set{"app": "checkout"}))
		sink := newRecorder()
		s.Set(key("pm"), gauge(time.Second), fleet, sink)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "a",
			Labels: map[string]string{"app": "checkout"}}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}
		tracker.Update(pod)
		sourcetest.Pass(5 * time.Second)
		assert.Empty(t, w.times("10.0.0.1"), "not ready")

		ready := pod.DeepCopy()
		ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.Now()}}
		tracker.Update(ready)
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, sink.Samples("a"), 5)

		terminating := ready.DeepCopy()
		terminating.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		tracker.Update(terminating)
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, w.times("10.0.0.1"), 5, "terminating")

		tracker.Update(ready)
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, sink.Samples("a/2"), 5)
		tracker.Follow(key("pm"), "shop", labels.Nothing())
		sourcetest.Pass(5 * time.Second)
		assert.Len(t, w.times("10.0.0.1"), 10, "followed no more")
	})
}

// A subscription that is removed before it has begun, and sees a change of its fleet afterwards, reads nothing.
func TestRemovedWhileBeginning(t *testing.T) {
	s := newSource(Options{}.withDefaults(), newNetwork(answering("load 1\n")))
	u := newSubscription(s, gauge(time.Second), fleetOf(1), newRecorder())
	u.end()
	u.begin()
	u.update()
	assert.Empty(t, s.endpoints)
}

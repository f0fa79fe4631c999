package pods

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source/sourcetest"
)

// tenant returns a fleet of n pods of a namespace, and which of them has which address.
func tenant(namespace string, net, n int) (*sourcetest.Fleet, map[string]int) {
	var all []podtracker.Instance
	number := map[string]int{}
	for i := range n {
		x := instance(fmt.Sprintf("%s-%d", namespace, i), fmt.Sprintf("10.%d.%d.%d", net, i/250, i%250))
		x.Pod.Namespace = namespace
		all = append(all, x)
		number[x.IP] = i
	}
	return sourcetest.NewFleet(all...), number
}

// The pods of one namespace answer as they like, and those of another are read all the same.
func TestNamespaceCannotTakeTheSlotsOfOthers(t *testing.T) {
	const victims, span = 20, time.Minute
	for name, test := range map[string]struct {
		hostile, namespaces int
		answer              func(n int) time.Duration // to the n-th scrape
	}{
		"quick and slow in turn": {250, 1,
			func(n int) time.Duration { return time.Duration(n%2) * 2900 * time.Millisecond }},
		"never":         {250, 1, func(int) time.Duration { return time.Hour }},
		"just not slow": {2500, 1, func(int) time.Duration { return slowAfter - time.Millisecond }},
		"several namespaces": {250, 5,
			func(n int) time.Duration { return time.Duration(n%2) * 2900 * time.Millisecond }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hostile := map[string]bool{}
				w := newNetwork(func(host string, n int) (string, time.Duration, error) {
					if hostile[host] {
						return "load 1\n", test.answer(n), nil
					}
					return "load 1\n", time.Millisecond, nil
				})
				s := running(t, Options{Concurrency: 128, Timeout: 3 * time.Second}, w)
				for i := range test.namespaces {
					namespace := fmt.Sprint("hostile-", i)
					fleet, addresses := tenant(namespace, 1+i, test.hostile)
					for address := range addresses {
						hostile[address] = true
					}
					s.Set(types.NamespacedName{Namespace: namespace, Name: "pm"}, gauge(time.Second), fleet,
						newRecorder())
				}
				sourcetest.Pass(span / 2)
				fleet, _ := tenant("victim", 0, victims)
				sink := newRecorder()
				s.Set(types.NamespacedName{Namespace: "victim", Name: "pm"}, gauge(time.Second), fleet, sink)
				sourcetest.Pass(span)
				readings, oldest := 0, time.Duration(0)
				for _, x := range fleet.Active() {
					samples := sink.Samples(x.ID)
					readings += len(samples)
					for i := range len(samples) - 1 {
						oldest = max(oldest, time.Duration(samples[i+1].T-samples[i].T)*time.Millisecond)
					}
				}
				t.Logf("%d readings, at most %s apart", readings, oldest)
				assert.Equal(t, victims*int(span/time.Second), readings)
				assert.LessOrEqual(t, oldest, 1100*time.Millisecond)
			})
		})
	}
}

// A namespace whose pods are slow as well gets each slot that becomes free, while it has fewer than
// targets whose pods never answer: its samples are no further apart than the time after which a
// scrape ends.
func TestSlowNamespaceAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hostile, victims, timeout, took = 5, 20, 3 * time.Second, 2 * slowAfter
		s := running(t, Options{Concurrency: 128, Timeout: timeout},
			newNetwork(func(host string, _ int) (string, time.Duration, error) {
				if strings.HasPrefix(host, "10.0.") {
					return "load 1\n", took, nil
				}
				return "", time.Hour, nil
			}))
		for i := range hostile {
			namespace := fmt.Sprint("hostile-", i)
			fleet, _ := tenant(namespace, 1+i, 250)
			key := types.NamespacedName{Namespace: namespace, Name: "pm"}
			s.Set(key, gauge(time.Second), fleet, newRecorder())
		}
		sourcetest.Pass(30 * time.Second)
		fleet, _ := tenant("victim", 0, victims)
		sink := newRecorder()
		s.Set(types.NamespacedName{Namespace: "victim", Name: "pm"}, gauge(time.Second), fleet, sink)
		sourcetest.Pass(time.Minute)
		oldest := time.Duration(0)
		for _, x := range fleet.Active() {
			samples := sink.Samples(x.ID)
			require.NotEmpty(t, samples)
			for i := range len(samples) - 1 {
				oldest = max(oldest, time.Duration(samples[i+1].T-samples[i].T)*time.Millisecond)
			}
		}
		assert.LessOrEqual(t, oldest, timeout+2*took)
	})
}

// refusing is a sink of a PredictedMetric that is refused.
type refusing struct{ *recorder }

func (refusing) Refuses() bool { return true }

// A namespace that asks for ten times its share of scrapes gets its share, evenly over its pods,
// and learns why. Another one is read as before.
func TestScrapesOfANamespaceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var scrapes, ofVictim atomic.Int64
		w := newNetwork(func(host string, _ int) (string, time.Duration, error) {
			if strings.HasPrefix(host, "10.1.") {
				scrapes.Add(1)
			} else {
				ofVictim.Add(1)
			}
			return "load 1\n", time.Millisecond, nil
		})
		s := running(t, Options{}, w)
		const metrics, pods, span = 20, 250, 5 * time.Second
		fleet, _ := tenant("bank", 1, pods)
		sinks := make([]*recorder, metrics)
		for i := range metrics {
			c := gauge(100 * time.Millisecond)
			c.Path = fmt.Sprint("/metrics/", i)
			sinks[i] = newRecorder()
			s.Set(types.NamespacedName{Namespace: "bank", Name: fmt.Sprint(i)}, c, fleet, sinks[i])
		}
		victims, _ := tenant("shop", 2, 10)
		s.Set(types.NamespacedName{Namespace: "shop", Name: "pm"}, gauge(time.Second), victims, newRecorder())
		sourcetest.Pass(2 * time.Second)
		scrapes.Store(0)
		ofVictim.Store(0)
		sourcetest.Pass(span)
		assert.LessOrEqual(t, scrapes.Load(), int64(1.1*maxScrapeRate*span.Seconds()), "of %d a second",
			10*metrics*pods)
		assert.InDelta(t, 10*span.Seconds(), ofVictim.Load(), 10)
		for _, sink := range sinks {
			assert.Contains(t, sink.LastSourceError(),
				"the namespace requests 50000 scrapes a second: must be at most 10000, so each pod is scraped every 500ms")
			for _, x := range fleet.Active() {
				require.GreaterOrEqual(t, len(sink.Samples(x.ID)), 8, "each is read")
			}
		}
		for i := 1; i < metrics; i++ {
			s.Remove(types.NamespacedName{Namespace: "bank", Name: fmt.Sprint(i)})
		}
		sourcetest.Pass(3 * time.Second)
		assert.Empty(t, sinks[0].LastSourceError(), "it asks for less now")
	})
}

// The pods of a PredictedMetric beyond the budget of its namespace are not scraped.
func TestRefusedAreNotScraped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var scrapes atomic.Int64
		s := running(t, Options{}, newNetwork(func(string, int) (string, time.Duration, error) {
			scrapes.Add(1)
			return "load 1\n", time.Millisecond, nil
		}))
		fleet, _ := tenant("bank", 1, 10)
		s.Set(types.NamespacedName{Namespace: "bank", Name: "pm"}, gauge(time.Second), fleet, refusing{newRecorder()})
		sourcetest.Pass(10 * time.Second)
		assert.Zero(t, scrapes.Load())
		s.Set(types.NamespacedName{Namespace: "bank", Name: "other"}, gauge(time.Second), fleet, newRecorder())
		sourcetest.Pass(10 * time.Second)
		assert.InDelta(t, 100, scrapes.Load(), 10, "one that is served has them scraped")
	})
}

func TestLaneSharesItsSlots(t *testing.T) {
	s := newSource(Options{}.withDefaults(), nil)
	l := newNamespaceLimiter(8)
	var all []*endpoint
	of := func(namespace string) *endpoint {
		e := newEndpointOf(s, len(all))
		e.key.pod.Namespace = namespace
		all = append(all, e)
		return e
	}
	var running []*endpoint
	for range 10 {
		if e := of("a"); l.acquire(e) {
			running = append(running, e)
		}
	}
	assert.Len(t, running, 6, "three quarters")
	b := []*endpoint{of("b"), of("b"), of("b")}
	assert.True(t, l.acquire(b[0]))
	assert.True(t, l.acquire(b[1]))
	assert.False(t, l.acquire(b[2]))
	c := of("c")
	assert.False(t, l.acquire(c))
	assert.False(t, l.tryAcquire(of("d")), "and does not wait")
	var order []string
	for range 6 {
		next := l.release(running[0])
		running = append(running[1:], next)
		order = append(order, next.key.pod.Namespace)
	}
	assert.Equal(t, []string{"c", "b", "a", "a", "a", "a"}, order, "those that have fewest come first")
	assert.Nil(t, l.release(running[0]))
	assert.True(t, l.tryAcquire(of("d")))
}

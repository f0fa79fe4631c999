package forecaster

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// failAll lets time go by, in each second of which every reading of the pods that pass does not read fails.
func (w *world) failAll(d time.Duration, why func(pod string) error) {
	for range int(d / time.Second) {
		for _, i := range w.fleet.all {
			if i.End.IsZero() && w.silent[i.ID] {
				w.feed.Fail(i.ID, why(i.Pod.Name))
			}
		}
		w.pass(time.Second, nil)
	}
}

// unreadable silences all pods.
func (w *world) unreadable() {
	for n := range w.fleet.all {
		x := &w.fleet.all[n]
		x.IP = fmt.Sprintf("10.0.0.%d", n)
		w.silent[x.ID] = true
	}
}

func notServed(pod string) error {
	return fmt.Errorf("http://10.0.0.%s:9090/metrics: metric \"bussy\" is not served; the endpoint serves \"busy\"",
		pod[len("pod-"):])
}

func refused(string) error { return source.NotYet{Err: errors.New("connect: connection refused")} }

// TestWrongPortIsASourceThatFails checks that refused connections count at once for pods that have
// been ready for long, and after a while for new ones.
func TestWrongPortIsASourceThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		age, after time.Duration
	}{
		"old pods": {age: time.Hour, after: settledAfter + time.Second},
		"new pods": {after: newFor + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, steady(1))
				w.unreadable()
				for n := range w.fleet.all {
					w.fleet.all[n].Start = time.Now().Add(-c.age)
				}
				w.failAll(c.after-2*time.Second, refused)
				assert.Equal(t, snapshot.WaitingForSamples, w.reason())
				w.failAll(2*time.Second, refused)
				assert.Equal(t, snapshot.SourceFailing, w.reason())
				assert.EqualError(t, w.get().Err, "none of 2 ready pods can be read: connect: connection refused")
			})
		})
	}
}

// A wrong metric, port or path is known after two readings of every pod, and passes with the first that succeeds.
func TestWrongMetricIsASourceThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, steady(1))
		w.unreadable()
		w.failAll(time.Second, notServed)
		assert.Equal(t, snapshot.WaitingForSamples, w.reason())
		w.failAll(time.Second, notServed)
		assert.Equal(t, snapshot.SourceFailing, w.reason())
		assert.EqualError(t, w.get().Err,
			`none of 3 ready pods can be read: http://10.0.0.0:9090/metrics: metric "bussy" is not served; the endpoint serves "busy"`)
		assert.True(t, w.feed.awaitsData(), "a replica that starts waits for it as for other samples")

		w.failAll(time.Second, func(pod string) error {
			if pod == "pod-2" {
				return errors.New("http://10.0.0.2:9090/metrics: no complete answer within 1s")
			}
			return notServed(pod)
		})
		assert.EqualError(t, w.get().Err,
			`none of 3 ready pods can be read: pod pod-0: http://10.0.0.0:9090/metrics: metric "bussy" is not served; the endpoint serves "busy"; `+
				`pod pod-2: http://10.0.0.2:9090/metrics: no complete answer within 1s`)

		for range 2 { // the clocks of the pods are ahead
			for _, pod := range []string{"pod-0", "pod-1", "pod-2"} {
				w.feed.Append(pod, pipeline.Sample{T: time.Now().Add(time.Hour).UnixMilli(), V: 1})
			}
			w.pass(time.Second, nil)
		}
		assert.Equal(t, snapshot.SourceFailing, w.reason())
		assert.ErrorContains(t, w.get().Err, "none of 3 ready pods can be read: a sample is dated ")

		delete(w.silent, "pod-0")
		w.failAll(time.Second, notServed)
		assert.Equal(t, snapshot.WaitingForSamples, w.reason(), "one is read, the others may be soon")
		clear(w.silent)
		w.pass(time.Minute, nil)
		assert.NoError(t, w.get().Err)
	})
}

// A pod without a readiness probe is ready before it listens, one reading may fail by chance, and a
// pod that is read shows that the spec is right.
func TestStartIsNoFailure(t *testing.T) {
	for name, play := range map[string]func(w *world){
		"a pod that does not listen yet": func(w *world) {
			w.fleet.all[0].Start, w.fleet.all[1].Start = time.Now(), time.Now()
			w.failAll(settledAfter-time.Second, notServed)
		},
		"a new pod that listens late": func(w *world) {
			w.fleet.all[0].Start, w.fleet.all[1].Start = time.Now(), time.Now()
			w.failAll(newFor-time.Second, refused)
		},
		"slow answers of pods that have been ready for long": func(w *world) { w.failAll(settledAfter, refused) },
		"a query without a result yet": func(w *world) {
			for range newFor/time.Second - 1 {
				w.feed.SourceFailed(source.NotYet{Err: errors.New("the query returns nothing")})
				w.pass(time.Second, nil)
			}
		},
		"a reading that fails once": func(w *world) { w.failAll(time.Second, notServed) },
		"failures with a success in between": func(w *world) {
			for range 5 {
				w.feed.Fail("pod-0", errors.New("timeout"))
				w.feed.Append("pod-0") // a counter has no rate yet
				w.feed.Fail("pod-1", errors.New("timeout"))
				w.feed.Append("pod-1")
				w.failAll(time.Second, notServed)
			}
		},
		"another pod that is read": func(w *world) {
			delete(w.silent, "pod-1")
			w.failAll(time.Minute, notServed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, steady(1))
				w.unreadable()
				play(w)
				assert.NotEqual(t, snapshot.SourceFailing, w.reason())
			})
		})
	}
}

// An update to a version without the metric is reported as that once it has replaced all pods, and
// samples that ran out as that.
func TestFailureAfterSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, steady(1))
		w.pass(time.Minute, nil)
		for n := range 2 {
			w.fleet.all[n].End = time.Now()
			w.silent[w.fleet.start(time.Now())] = true
		}
		w.failAll(settledAfter+2*time.Second, notServed)
		assert.Equal(t, snapshot.SourceFailing, w.reason())
		w.failAll(time.Minute, notServed)
		assert.Equal(t, snapshot.Stale, w.reason())
	})
}

// Sources that query, and loads that are measured as a whole, have the same reason. A sender that
// is silent is no failure yet.
func TestSourceThatFailsAsAWhole(t *testing.T) {
	query := errors.New(`http://prometheus:9090: query "bussy" returns nothing for the last 5m0s`)
	for name, c := range map[string]struct {
		whole  bool
		pushed bool
		fail   func(*Feed)
		want   string
	}{
		"query for pods": {fail: func(f *Feed) { f.SourceFailed(query) },
			want: "none of 2 ready pods can be read: " + query.Error()},
		"query for a whole": {whole: true, fail: func(f *Feed) { f.SourceFailed(query) },
			want: "the load of the target cannot be read: " + query.Error()},
		"value of a whole": {whole: true, fail: func(f *Feed) { f.Fail(source.WholeTarget, query) },
			want: "the load of the target cannot be read: " + query.Error()},
		"sender that is silent":  {pushed: true, fail: func(f *Feed) { f.SourceFailed(query) }},
		"query that works again": {fail: func(f *Feed) { f.SourceFailed(query); f.SourceFailed(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, steady(1))
				w.unreadable()
				settings := config()
				settings.Params.Whole = c.whole
				if c.pushed {
					settings.Interval = 0
				}
				feed, err := w.forecaster.Set(key, settings)
				require.NoError(t, err)
				w.feed = feed
				feed.SetPods(w.fleet)
				for range settledAfter/time.Second - 1 {
					c.fail(feed)
					w.pass(time.Second, nil)
				}
				if !c.whole {
					assert.Equal(t, snapshot.WaitingForSamples, w.reason(), "the server may be restarting")
				}
				c.fail(feed)
				w.pass(time.Second, nil)
				if c.want == "" {
					assert.Equal(t, snapshot.WaitingForSamples, w.reason())
					return
				}
				assert.Equal(t, snapshot.SourceFailing, w.reason())
				assert.EqualError(t, w.get().Err, c.want)
			})
		})
	}
}

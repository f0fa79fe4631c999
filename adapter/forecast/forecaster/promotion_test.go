package forecaster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// A blue-green promotion makes other pods the target, at once. The load, which stays the same,
// moves to them within some seconds, and some of them are read late.
func TestPromotionIsNoChangeOfTheLoad(t *testing.T) {
	const load, threshold, pods = 5.0, 0.7, 10
	for method, p := range map[string]pipeline.Params{"adaptive": pipeline.AdaptiveParams(),
		"holt": pipeline.HoltParams()} {
		for name, readAfter := range map[string]time.Duration{"read at once": 0, "some read late": 8 * time.Second} {
			t.Run(method+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, pods, steady(load))
					c := config()
					c.Params = p
					c.Params.Threshold, c.Params.Max = threshold, 20
					_, err := w.forecaster.Set(key, c)
					require.NoError(t, err)
					w.pass(2*time.Minute, nil)
					require.NoError(t, w.get().Err)

					promoted := time.Now()
					for i := range w.fleet.all {
						w.fleet.all[i].End = promoted
					}
					for i := range pods {
						id := w.fleet.start(promoted)
						w.silent[id] = i%5 < 2
					}
					w.load = func(at time.Time) float64 { return load * min(1, at.Sub(promoted).Seconds()/10) }
					served := 0
					check := func(s snapshot.Snapshot) {
						if time.Since(promoted) > readAfter {
							clear(w.silent)
						}
						if s.Err != nil {
							return
						}
						served++
						after := time.Since(promoted)
						assert.InDelta(t, load, s.Forecast.ServedLoad, 0.4*load, "%s after it", after)
						assert.LessOrEqual(t, s.Decision.Desired, pods, "%s after it", after)
						assert.GreaterOrEqual(t, s.Decision.Desired, 7, "%s after it", after)
					}
					w.pass(3*time.Minute, check)
					assert.Greater(t, served, 120)
				})
			})
		}
	}
}

// Requests move to the new pods when a Service does, and the selector of the scale follows, up to
// seconds later. The readings of that time, each of the second before it, add up to a fall and then
// to a rise.
func TestRequestsMoveBeforeTheSelector(t *testing.T) {
	const load, pods = 2.2, 5
	for _, early := range []time.Duration{0, 500 * time.Millisecond, time.Second, 5 * time.Second} {
		t.Run(early.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, pods, steady(load))
				c := config()
				c.Params = pipeline.AdaptiveParams()
				c.Params.Threshold, c.Params.Max = 0.7, 20
				_, err := w.forecaster.Set(key, c)
				require.NoError(t, err)
				w.pass(2*time.Minute, nil)

				moved := time.Now().Add(200 * time.Millisecond)
				share := func(at time.Time) float64 { return min(1, max(0, at.Sub(moved).Seconds())) }
				w.load = func(at time.Time) float64 { return load * (1 - share(at)) }
				w.pass(early.Truncate(time.Second), nil)
				promoted := moved.Add(early)
				for i := range w.fleet.all {
					w.fleet.all[i].End = promoted
				}
				for range pods {
					w.fleet.start(promoted)
				}
				w.load = func(at time.Time) float64 { return load * share(at) }
				served := 0
				w.pass(time.Minute, func(s snapshot.Snapshot) {
					if s.Err == nil {
						served++
						assert.InDelta(t, load, s.Forecast.ServedLoad, 0.1*load, "%s after it", time.Since(promoted))
					}
				})
				assert.GreaterOrEqual(t, served, 45, "seconds with a forecast")
			})
		})
	}
}

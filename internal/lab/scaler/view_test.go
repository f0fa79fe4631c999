package scaler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/pipeline"
)

// steady returns a view of pods that have been ready since the run began and busy to a share ever since.
func steady(now int64, busy ...float64) *lab.View {
	v := &lab.View{Now: now, Target: len(busy), Rose: -1, Fell: -1, Min: 1, Max: 30}
	for i, share := range busy {
		p := &lab.Pod{ID: fmt.Sprintf("pod-%d", i), Ready: 0, Ended: lab.Never}
		for t := int64(0); t < now; t += 1000 {
			p.Busy.Add(t, share)
		}
		v.Pods = append(v.Pods, p)
	}
	return v
}

// order adds a pod that is not ready yet.
func order(v *lab.View) {
	v.Pods = append(v.Pods, &lab.Pod{ID: fmt.Sprintf("pod-%d", len(v.Pods)), Created: v.Now - 5000,
		Ready: v.Now + 15_000, Ended: lab.Never})
	v.Target++
}

func decide(t *testing.T, name string, v *lab.View) int {
	t.Helper()
	s := testSetup(ramp(1, 1, 0, 1))
	s.Min = 1
	return decideWith(t, name, s, v)
}

func decideWith(t *testing.T, name string, s Setup, v *lab.View) int {
	t.Helper()
	made, err := New(name, s)
	require.NoError(t, err)
	before := made.Next()
	n := made.Decide(v)
	assert.Greater(t, made.Next(), before, "a look comes after the one before")
	return n
}

func TestHPAsOfOneView(t *testing.T) {
	const now = 400_000
	short := func(busy ...float64) *lab.View {
		v := steady(now, busy...)
		order(v)
		return v
	}
	idle := &lab.View{Now: now, Target: 3, Rose: -1, Fell: -1, Min: 1, Max: 30}
	for _, c := range []struct {
		rule      string
		view      *lab.View
		cpu, keda int
	}{
		{"90% are 92% of CPU: 4 x 92/70; 3.6/0.7", steady(now, 0.9, 0.9, 0.9, 0.9), 6, 6},
		{"76% are within 10% of 70%; as CPU they are 78%", steady(now, 0.76, 0.76, 0.76, 0.76), 5, 4},
		{"a pod that is starting counts as idle, and as a replica: both are within 10%", short(0.9, 0.9, 0.9, 0.9), 5,
			5},
		{"that is not enough: 83% of CPU for 7, 5.7/0.7", short(0.95, 0.95, 0.95, 0.95, 0.95, 0.95), 9, 9},
		{"it keeps CPU from growing", short(0.8, 0.8, 0.8), 4, 4},
		{"a fall is followed after five minutes", steady(now, 0.1, 0.1, 0.1), 3, 3},
		{"nothing to read", idle, 3, 3},
		{"pods that do not work are read all the same", steady(now, 0, 0), 2, 2},
	} {
		assert.Equal(t, c.cpu, decide(t, "hpa-cpu", c.view), "hpa-cpu: %s", c.rule)
		assert.Equal(t, c.keda, decide(t, "keda", c.view), "keda: %s", c.rule)
	}
}

func TestForecastsOfASteadyLoadOfOneView(t *testing.T) {
	const now = 400_000
	s := testSetup(ramp(1, 1, 0, 1))
	s.Min, s.Behavior = 1, RecommendedBehavior()
	high := steady(now, 0.9, 0.9, 0.9, 0.9) // 5.14 pods
	order(high)
	for _, name := range []string{"paper", "foresail-total", "foresail-load", "foresail-replicas", "foresail-direct"} {
		assert.Equal(t, 6, decideWith(t, name, s, high), "%s: whatever is ready", name)
		assert.Equal(t, 4, decideWith(t, name, s, steady(now, 0.69, 0.69, 0.69, 0.69)), name)
	}
}

func TestWithoutAForecastReplicasStay(t *testing.T) {
	asked := &lab.View{Now: 400_000, Target: 3, Rose: -1, Fell: -1, Min: 1, Max: 30}
	order(asked)
	for _, name := range []string{"paper", "foresail-total", "foresail-load", "foresail-replicas", "foresail-direct"} {
		assert.Equal(t, asked.Target, decide(t, name, asked), "%s: no pod is ready", name)
		if name != "paper" {
			assert.Equal(t, 2, decide(t, name, steady(9_000, 0.9, 0.9)),
				"%s: pods have been read for less than ten seconds", name)
		}
	}
}

// N* is what is set, where the HPA's own limits leave room for it.
func TestReplicasAreThoseOfTheDecision(t *testing.T) {
	load := ramp(200, 1000, 70_000, 220_000)
	s := testSetup(load)
	made, err := New("foresail-replicas", s)
	require.NoError(t, err)
	spy := &spy{forecasting: made.(*forecasting)}
	lab.Run(newWorld(load, need(200)), spy, lab.Span{Length: 4 * time.Minute}, nil)
	rises := 0
	for _, l := range spy.looks {
		if l.forecast > l.before {
			assert.Equal(t, l.forecast, l.after)
			rises++
		} else {
			assert.Equal(t, l.before, l.after)
		}
	}
	assert.Greater(t, rises, 4)
}

type spy struct {
	*forecasting
	looks []struct{ before, forecast, after int }
}

func (s *spy) Decide(v *lab.View) int {
	n := s.forecasting.Decide(v)
	if f, ok := s.Forecast(); ok {
		s.looks = append(s.looks, struct{ before, forecast, after int }{v.Target, f.Decision.Desired, n})
	}
	return n
}

func TestWithoutToleranceKeepsTheRestOfABehavior(t *testing.T) {
	window := int32(60)
	given := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &window}}
	got := withoutTolerance(given)
	assert.Equal(t, int32(60), *got.ScaleDown.StabilizationWindowSeconds)
	assert.True(t, got.ScaleDown.Tolerance.IsZero())
	assert.True(t, got.ScaleUp.Tolerance.IsZero())
	assert.Nil(t, given.ScaleDown.Tolerance, "what was given is not changed")
}

func TestStartupTimeLearnsFromPodsThatHaveStarted(t *testing.T) {
	v := &lab.View{Now: 100_000}
	add := func(created, ready, ended int64) {
		v.Pods = append(v.Pods, &lab.Pod{ID: fmt.Sprintf("pod-%d", len(v.Pods)), Created: created, Ready: ready,
			Ended: ended})
	}
	add(0, 0, lab.Never)            // was there
	add(90_000, 120_000, lab.Never) // will be ready
	add(10_000, lab.Never, 20_000)  // never was
	add(10_000, 60_000, 70_000)     // is gone
	assert.Equal(t, 25*time.Second, startupTime(v, pipeline.Holt, 25*time.Second))
	add(10_900, 29_100, lab.Never) // 19 s in whole seconds
	assert.Equal(t, 22_500*time.Millisecond, startupTime(v, pipeline.Holt, 25*time.Second), "a tenth at once")
	for i := range int64(5) {
		add(30_000+i, 49_000+i, lab.Never)
	}
	assert.Equal(t, 19*time.Second, startupTime(v, pipeline.Holt, 25*time.Second))
}

// A decision has to be made from the same samples whether they were read at once or bit by bit.
func TestReadingBitByBitIsReadingAtOnce(t *testing.T) {
	load := ramp(200, 1000, 70_000, 220_000)
	s := testSetup(load)
	w := newWorld(load, 3)
	bits, err := newFeed(s.Params, &s, lab.EverySecond(), 0)
	require.NoError(t, err)
	for at := int64(5000); at <= 240_000; at += 5000 {
		w.Advance(at)
		once, err := newFeed(s.Params, &s, lab.EverySecond(), 0)
		require.NoError(t, err)
		a, _, errA := bits.forecast(w.View())
		once.begun = bits.begun
		b, _, errB := once.forecast(w.View())
		require.Equal(t, errB, errA)
		require.Equal(t, b, a)
		if at == 100_000 || at == 180_000 {
			w.SetTarget(w.View().Target + 3)
		}
		if at == 200_000 {
			w.SetTarget(4)
		}
	}
}

package signal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/plan"
)

// hourly is a load of two nodes that needs six from minute 30 to minute 40 of each hour.
func hourly(t time.Time) float64 {
	if m := t.Minute(); m >= 30 && m < 40 {
		return 6
	}
	return 2
}

// learning returns a pool of six workers, whose launches take four minutes, with one signal.
func learning(t *testing.T, query v1alpha1.SignalQuery, series ...fakeSeries) *Set {
	t.Helper()
	f := &fakeProm{}
	f.set(series...)
	o := asking(f, "work", query, "1")
	o.Forecast.Interval = 30 * time.Second
	return newSet(t, o)
}

// until observes a pool until a time, and returns the last signal.
func until(t *testing.T, s *Set, from, end time.Time) (last plan.Signal) {
	t.Helper()
	for now := from; now.Before(end); now = now.Add(s.options.Forecast.Interval) {
		o := Observation{Now: now, Workers: workers(6, 0), Expected: 6, StartupTime: 4 * time.Minute}
		last = named(t, s.Observe(t.Context(), o), "work")
	}
	return last
}

var (
	ofPool = v1alpha1.SignalQuery{Query: "load", Value: v1alpha1.PoolValueSum}
	ofNode = v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}
)

// Nodes for what recurs are ordered before it comes: for pools by the same learner as for pods.
func TestWhatRecursIsLearned(t *testing.T) {
	for name, s := range map[string]*Set{
		"of the pool":    learning(t, ofPool, load("", hourly)),
		"of each worker": learning(t, ofNode, same(6, func(t time.Time) float64 { return hourly(t) / 6 })...),
	} {
		t.Run(name, func(t *testing.T) {
			first := start.Truncate(time.Hour).Add(27 * time.Minute) // the load rises three minutes later
			got := until(t, s, start, first)
			require.True(t, got.Known, got.Err)
			assert.Equal(t, 2, got.Needs, "nothing is known of the hours before")
			got = until(t, s, first, first.Add(8*time.Hour))
			assert.GreaterOrEqual(t, got.Needs, 5)
			assert.GreaterOrEqual(t, got.Fits, got.Needs, "nodes that are needed soon are not removed")
		})
	}
}

// A load of which a part is unknown is not learned, nor one of the time from which the clock was set back.
func TestUnknownLoadsAreNotLearned(t *testing.T) {
	silent := learning(t, ofNode, same(5, constant(0.5))...)
	got := until(t, silent, start, start.Add(time.Hour))
	require.NotEmpty(t, got.Silent)
	assert.Zero(t, silent.sources[0].(*measured).past.Newest())

	for _, s := range []*Set{learning(t, ofPool, load("", hourly)), learning(t, ofNode, same(6, hourly)...)} {
		state := func() *signalState {
			if v, ok := s.sources[0].(*measured); ok {
				return v.signalState
			}
			return s.sources[0].(*pooled).signalState
		}
		later := start.Add(time.Hour)
		until(t, s, start, later)
		assert.Greater(t, state().past.Newest(), later.Add(-3*time.Minute).UnixMilli())
		until(t, s, start, start.Add(time.Minute))
		assert.LessOrEqual(t, state().past.Newest(), start.Add(time.Minute).UnixMilli())
	}
}

package threshold

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const seed = 16

// day is a day of a pod by the minute, whose load comes and goes; latency says how long users wait at a load.
func day(most float64, latency func(load float64, r *rand.Rand) float64) (out []Measurement) {
	r := rand.New(rand.NewPCG(seed, 0))
	for minute := range 24 * 60 {
		load := most / 2 * (1 - math.Cos(float64(minute)/24/60*6*math.Pi)) * (0.95 + 0.1*r.Float64())
		out = append(out, Measurement{time.UnixMilli(0).Add(time.Duration(minute) * time.Minute), load,
			latency(load, r)})
	}
	return out
}

// queue is a pod that has one worker: users wait the longer the fuller it is.
func queue(load float64, r *rand.Rand) float64 {
	return 0.02 / max(0.001, 1-load) * (0.8 + 0.4*r.Float64())
}

func TestFindsTheLoadFromWhichUsersWait(t *testing.T) {
	for _, limit := range []float64{0.06, 0.1} { // at least at 1 - 0.02 × 1.2 / limit, at most at 1 - 0.02 × 0.8 / limit
		a, err := Find(Question{Measurements: day(0.97, queue), Limit: limit, Share: 0.01, Seed: 1})
		require.NoError(t, err)
		require.Equal(t, Found, a.Outcome, "seed %d", seed)
		assert.InDelta(t, 1-0.02*1.2/limit, a.Threshold, 0.03, "seed %d", seed)
		assert.LessOrEqual(t, a.Low, a.Threshold)
		assert.GreaterOrEqual(t, a.High, a.Threshold)
		assert.Less(t, a.High-a.Low, 0.1)
		assert.Greater(t, a.ToldApart, 0.95)
		assert.LessOrEqual(t, a.Rounded(), a.Low)
		assert.Greater(t, a.Rounded(), a.Low*0.9)
		again, err := Find(Question{Measurements: day(0.97, queue), Limit: limit, Share: 0.01, Seed: 1})
		require.NoError(t, err)
		assert.Equal(t, a, again)
	}
}

// A deployment makes users wait although pods have little to do. It does not count among many other minutes.
func TestSomeSlowMomentsAtALowLoad(t *testing.T) {
	without := day(0.97, queue)
	a, err := Find(Question{Measurements: without, Limit: 0.1, Share: 0.01, Seed: 1})
	require.NoError(t, err)
	with := day(0.97, queue)
	for i := range 5 {
		with[i].Latency = 3
	}
	b, err := Find(Question{Measurements: with, Limit: 0.1, Share: 0.01, Seed: 1})
	require.NoError(t, err)
	assert.Equal(t, Found, b.Outcome)
	assert.InDelta(t, a.Threshold, b.Threshold, 0.03)
}

func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		measurements []Measurement
		want         Outcome
	}{
		"the load was never high": {day(0.5, queue), NeverSlow},
		"slow without any load":   {day(0.97, func(float64, *rand.Rand) float64 { return 2 }), AlwaysSlow},
		"slow at random": {day(0.97,
			func(_ float64, r *rand.Rand) float64 { return 0.02 + 0.1*math.Floor(1.1*r.Float64()) }), Unrelated},
		"slow when there is less to do": {day(0.97,
			func(load float64, _ *rand.Rand) float64 { return 0.15 - 0.1*load }), Unrelated},
		"often slow, and more with load": {day(0.97, func(load float64, r *rand.Rand) float64 {
			return 0.02 + 0.1*math.Floor(r.Float64()+0.1+0.9*load)
		}), AlwaysSlow},
	} {
		a, err := Find(Question{Measurements: c.measurements, Limit: 0.1, Share: 0.01, Seed: 1})
		require.NoError(t, err, name)
		assert.Equal(t, c.want, a.Outcome, "%s: %+v", name, a)
		assert.True(t, math.IsNaN(a.Threshold), name)
		assert.True(t, math.IsNaN(a.Rounded()), name)
		total := 0
		for i, r := range a.Rows {
			total += r.Count
			assert.LessOrEqual(t, r.From, r.To)
			if i > 0 {
				assert.LessOrEqual(t, a.Rows[i-1].To, r.From)
			}
		}
		assert.Equal(t, len(c.measurements), total)
	}
}

func TestRejectsWhatIsNoMeasurement(t *testing.T) {
	few := day(0.9, queue)[:Fewest-1]
	_, err := Find(Question{Measurements: few, Limit: 0.1, Share: 0.01})
	require.ErrorContains(t, err, "29 measurements that have both a load and a latency: at least 30 are needed")
	for _, bad := range []float64{math.NaN(), math.Inf(1), -1} {
		for _, m := range []Measurement{{Load: bad}, {Latency: bad}} {
			_, err := Find(Question{Measurements: append(day(0.9, queue), m), Limit: 0.1, Share: 0.01})
			require.ErrorContains(t, err, "must be finite, 0 or more")
		}
	}
}

func TestPoolsAreMonotone(t *testing.T) {
	m := func(load, latency float64) Measurement { return Measurement{Load: load, Latency: latency} }
	q := &Question{Limit: 1, Share: 0.25}
	assert.True(t, math.IsNaN(most([]Measurement{m(1, 2), m(2, 2)}, q)))
	assert.Equal(t, 2.0, most([]Measurement{m(1, 0), m(2, 0), m(3, 2)}, q))
	assert.Equal(t, 4.0, most([]Measurement{m(1, 2), m(2, 0), m(3, 0), m(4, 0), m(5, 2)}, q), "one of four")
	assert.True(t, math.IsNaN(most([]Measurement{m(1, 2), m(2, 0), m(3, 0), m(4, 2)}, q)), "one of three")
	assert.Equal(t, 1.0, most([]Measurement{m(1, 0), m(2, 2), m(2, 0), m(2, 0)}, q),
		"as much load counts as one: one of three")
}

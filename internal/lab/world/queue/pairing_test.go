package queue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type level float64

func (l level) Rate(int64) float64 { return float64(l) }

func TestScalersWithOneSeedMeetTheSameArrivalsAndPods(t *testing.T) {
	run := func(seed uint64, targets ...int) *World {
		w := New(Config{Load: level(400), Seed: seed, Min: 1, Max: 20, Warm: 4, Model: Defaults()})
		for i, n := range targets {
			w.Advance(int64(i+1) * 7_000)
			w.SetTarget(n)
		}
		w.Advance(60_000)
		return w
	}
	a, b, other := run(1, 9, 3, 6), run(1, 5, 6, 7, 10), run(2, 9, 3, 6)
	assert.Equal(t, a.log.before, b.log.before)
	require.Len(t, a.pods, 12)
	require.Len(t, b.pods, 10)
	for i := range b.pods {
		x, y := a.pods[i], b.pods[i]
		assert.Equal(t, x.pod.ID, y.pod.ID)
		assert.Equal(t, x.slow, y.slow)
		assert.NotEqual(t, x.slow, other.pods[i].slow)
		if x.pod.IsReady(60_000) && y.pod.IsReady(60_000) {
			assert.Equal(t, x.pod.Ready-x.pod.Created, y.pod.Ready-y.pod.Created)
		}
	}
	for n := range 100 {
		assert.Equal(t, a.request(drawsOf(a.seed, n), 1, 0), b.request(drawsOf(b.seed, n), 1, 0))
	}
}

func TestRequestsAreAsTheModelSays(t *testing.T) {
	m := Defaults()
	w := New(Config{Load: level(1), Seed: 1, Min: 1, Max: 1, Warm: 1, Model: m})
	const n = 100_000
	work, waits := 0.0, 0.0
	for i := range n {
		r := w.request(drawsOf(w.seed, i), 1, 0)
		require.GreaterOrEqual(t, int(r.left), m.ChunksMin)
		require.LessOrEqual(t, int(r.left), m.ChunksMax)
		require.Zero(t, r.waits>>r.left, "no wait before the first piece")
		require.Zero(t, r.waits&1, "nor after the last")
		work += r.piece * float64(r.left) / n
		for bits := r.waits; bits > 0; bits &= bits - 1 {
			waits += 1.0 / n
		}
	}
	assert.InEpsilon(t, m.Service, work, 0.01)
	assert.InEpsilon(t, float64(m.WaitsMin+m.WaitsMax)/2, waits, 0.01)
}

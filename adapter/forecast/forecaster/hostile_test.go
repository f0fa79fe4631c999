package forecaster

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// TestHostileReadings has readings that are hostile or unlucky among honest ones, and compares what is served with what
// the honest ones say. -tags long has more worlds.
func TestHostileReadings(t *testing.T) { testHostileReadings(t, 0, 25) }

// testHostileReadings runs worlds of some seeds, each twice: with the honest readings alone the statement must hold as
// well.
func testHostileReadings(t *testing.T, from, to uint64) {
	steps, served, refused := 0, 0, 0
	for seed := from; seed < to; seed++ {
		for _, hostile := range []bool{false, true} {
			w := newHostile(t, seed, hostile)
			w.run()
			steps += w.step
			served += w.served
			refused += w.refused
			require.Greater(t, float64(w.served), 0.85*float64(w.step-w.warmUp),
				"seed %d, hostile %v: too much is an error", seed, hostile)
		}
	}
	require.Positive(t, refused)
	t.Logf("seeds %d to %d: %d steps, %d served, %d readings refused", from, to-1, steps, served, refused)
}

// hostile is a world whose honest load is known to it.
type hostile struct {
	*testing.T
	seed       uint64
	hostile    bool
	r          *rand.Rand
	at         time.Time
	forecaster *Forecaster
	feed       *Feed
	fleet      *fleet
	p          pipeline.Params
	every      time.Duration // between two readings of a pod

	honest   float64   // load for each pod, of the target with scope Target
	drift    float64   // of it, a reading
	shares   []float64 // of the pods
	possible []span    // of the loads of all pods that readings allowed, by reading
	highest  float64   // reading of the window
	quiet    int       // readings until the next impossible one may come
	warmUp   int

	step, served, refused int
}

// span is what the readings of a moment allow the load to be.
type span struct{ low, high float64 }

func newHostile(t *testing.T, seed uint64, bad bool) *hostile {
	w := &hostile{T: t, seed: seed, hostile: bad, r: rand.New(rand.NewPCG(seed, 35)), fleet: &fleet{}}
	w.at = time.Unix(1_800_000_000, 0)
	w.p = pipeline.HoltParams()
	if w.r.IntN(3) > 0 {
		w.p = pipeline.AdaptiveParams()
	}
	w.p.Threshold, w.p.Max = math.Pow(10, 8*w.r.Float64()-2), 100_000
	w.every = []time.Duration{time.Second, time.Second, 2 * time.Second, 5 * time.Second}[w.r.IntN(4)]
	pods := []int{1, 2, 3, 5, 10, 20}[w.r.IntN(6)]
	switch w.r.IntN(6) {
	case 0:
		w.p.Whole = true
	case 1:
		w.p.Saturation = pipeline.Saturation{Enabled: true, Max: 1.4 * w.p.Threshold, Zone: 0.02}
	case 2:
		w.p.Model.Kind = pipeline.Quadratic
	}
	for range pods {
		w.fleet.start(w.at.Add(-time.Hour))
		w.shares = append(w.shares, 0.7+0.6*w.r.Float64())
	}
	w.forecaster = New(func() time.Time { return w.at }, prometheus.NewRegistry(), Options{})
	c := config()
	c.Params, c.Interval = w.p, w.every
	feed, err := w.forecaster.Set(key, c)
	require.NoError(t, err, "seed %d", seed)
	feed.SetPods(w.fleet)
	feed.SetReplicas(pods)
	w.feed = feed
	w.honest = w.p.Threshold * (0.2 + 0.6*w.r.Float64())
	w.warmUp = 40
	return w
}

// run passes ten minutes of readings.
func (w *hostile) run() {
	for range 400 {
		w.at = w.at.Add(w.every)
		w.step++
		w.move()
		w.possible = append(w.possible, w.read())
		w.forecaster.runAll()
		w.check()
	}
}

// move changes the honest load: it stays, drifts, or jumps for all pods together. What it does is the same with and
// without hostile readings.
func (w *hostile) move() {
	switch w.r.IntN(60) {
	case 0:
		w.drift = (2*w.r.Float64() - 1) * 0.01 * w.p.Threshold
	case 1:
		w.drift = 0
	case 2:
		w.honest *= 0.5 + w.r.Float64()
	}
	w.honest = min(max(w.honest+w.drift, 0.05*w.p.Threshold), w.p.Threshold)
}

// read gives the feed a reading of each pod, or of the target, and returns what they allow.
func (w *hostile) read() span {
	if w.quiet > 0 {
		w.quiet--
	}
	if w.p.Whole {
		return w.give(source.WholeTarget, w.honest*float64(len(w.shares)), w.p.Threshold*float64(len(w.shares)))
	}
	var all span
	for i, x := range w.fleet.all {
		one := w.give(x.ID, w.honest*w.shares[i], w.p.Threshold)
		all.low += w.p.Model.Load(one.low)
		all.high += w.p.Model.Load(one.high)
	}
	return all
}

// give gives the feed an honest reading, or another one in its place or next to it.
func (w *hostile) give(id string, v, unit float64) span {
	v *= 0.97 + 0.06*w.r.Float64()
	event, size := w.r.IntN(100), w.r.Float64() // drawn in both worlds
	w.highest = max(w.highest, v)
	now := w.at.UnixMilli()
	honest := pipeline.Sample{T: now - int64(w.r.IntN(200)), V: v}
	if !w.hostile {
		w.feed.Append(id, honest)
		return span{v, v}
	}
	switch event {
	case 0: // no number of this one is a load
		bad := []float64{
			math.NaN(), math.Inf(1), math.Inf(-1), -v, -1, -math.MaxFloat64, math.MaxFloat64, -1e-3 * unit,
		}[int(8*size)]
		w.feed.Append(id, pipeline.Sample{T: honest.T, V: bad})
		w.refused++
	case 1: // far above everything, once
		if w.quiet > 0 {
			w.feed.Append(id, honest)
			return span{v, v}
		}
		w.quiet = 20
		bad := 4.2 * max(unit, w.highest) * math.Pow(10, 20*size*size)
		if w.p.Model.Kind != pipeline.Quadratic || size > 0 {
			w.feed.Append(id, pipeline.Sample{T: honest.T, V: bad})
		}
		w.refused++
	case 2:
		w.feed.Fail(id, errors.New("connection refused"))
	case 3: // nothing
	case 4:
		w.feed.Append(id, honest, pipeline.Sample{T: now + 10_000 + int64(size*1e9), V: 100 * unit})
		w.refused++
	case 5:
		w.feed.Append(id, pipeline.Sample{T: now - 86_400_000, V: 100 * unit}, honest)
	case 6:
		w.feed.Append(id, honest, honest, honest)
	case 7: // a flood of it
		var flood []pipeline.Sample
		for k := range 100 + int(size*3000) {
			flood = append(flood, pipeline.Sample{T: honest.T - int64(k%900), V: v})
		}
		w.feed.Append(id, flood...)
	case 9: // far below everything, once, where no other pod can have taken over the load
		if w.quiet > 0 || len(w.possible) < 20 || len(w.shares) > 1 && !w.p.Whole {
			w.feed.Append(id, honest)
			return span{v, v}
		}
		w.quiet = 20
		w.feed.Append(id, pipeline.Sample{T: honest.T, V: v * 0.1 * size})
	case 8:
		w.feed.SourceFailed(errors.New("the server is away"))
	default:
		w.feed.Append(id, honest)
	}
	return span{v, v}
}

// check states what may be served, in the terms of the honest readings of the last minute: a level that is not above
// the highest of them by more than a third, and below them only after a fall, replicas for no more than twice the load
// or twice the pods, or an error. A forecast is allowed so much for its trend and its noise: honest readings alone come
// up to 1.21, 0.64 and 1.98.
func (w *hostile) check() {
	s := w.get()
	if s.Err != nil || w.step <= w.warmUp {
		return
	}
	w.served++
	low, high := math.Inf(1), 0.0
	for _, x := range w.possible[max(0, len(w.possible)-60):] {
		low, high = min(low, x.low), max(high, x.high)
	}
	f, unit := &s.Forecast, w.p.Model.Load(w.p.Threshold)
	most := 2.2 * max(high/unit, float64(len(w.shares)))
	isLevel := f.Level <= 1.35*high && (f.Level >= 0.6*low || low < 0.8*high)
	if isLevel && f.ServedLoad/w.p.Threshold <= most && float64(s.Decision.Desired) <= math.Ceil(most) {
		return
	}
	require.Failf(w, "a value that the honest readings do not allow",
		"seed %d, hostile %v, step %d (%s, %d pods, every %s, whole %v, model %q): "+
			"level %v, served for %v replicas, desired %d; honest %v to %v, a pod carries %v",
		w.seed, w.hostile, w.step, w.p.Method, len(w.shares), w.every, w.p.Whole, w.p.Model.Kind,
		f.Level, f.ServedLoad/w.p.Threshold, s.Decision.Desired, low, high, unit)
}

func (w *hostile) get() snapshot.Snapshot {
	s, ok := w.forecaster.Get(key)
	require.True(w, ok)
	return s
}

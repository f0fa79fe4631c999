package seriestest

import (
	"math"
	"time"
)

// Wandering is a load with everything that loads have: noise around a level that wanders, a day, jumps that recur and
// others that do not, and gaps.
type Wandering struct {
	Random
	Level float64
}

// NewWandering returns the load of a seed.
func NewWandering(seed uint64) Wandering { return Wandering{Random: NewRandom(seed), Level: 100} }

// Load returns the load at a time (ms), NaN where it is not known.
func (w *Wandering) Load(t int64) float64 {
	w.Level = max(1, w.Level+w.NormFloat64())
	if w.Chance(0.01) {
		return math.NaN()
	}
	load := w.Level * (1.5 + math.Sin(2*math.Pi*float64(t)/86_400_000)) * math.Exp(w.NormFloat64()/10)
	if t%3_600_000 < 180_000 || t%7_000_000 < 200_000 {
		load *= 3
	}
	return load
}

// Play calls add with the load from one time to another, in steps of at least five seconds. Now and then nothing is
// known for a while.
func (w *Wandering) Play(from, to, interval time.Duration, add func(t int64, load float64)) {
	step := max(5*time.Second, interval).Milliseconds()
	for t := from.Milliseconds(); t < to.Milliseconds(); t += step {
		if w.Chance(0.0005) {
			t += w.Span(0, 2*3_600_000) / step * step
		}
		add(t, w.Load(t))
	}
}

package predict

import (
	"math"

	"github.com/foresail/foresail/pipeline/series"
)

// Holt is the paper's method: double exponential smoothing with different weights for rises and falls.
type Holt struct {
	LevelUp, LevelDown float64 // α↑, α↓
	TrendUp, TrendDown float64 // β↑, β↓
	Model              series.Model
	Saturation         series.Saturation
}

// holtState is the state of Holt's method: the smoothed load and its change per tick (paper, section 7.2).
type holtState struct{ level, slope float64 }

// dampingEpsilon keeps the damping factor defined if gap and trend are both zero (paper, section 7.6).
const dampingEpsilon = 1e-9

// forecast returns the load that is expected at the next tick.
func (t holtState) forecast(next *series.Load) float64 { return t.level + t.slope + next.Delta }

// Project runs Holt's method over the loads and returns its state after the last of them (paper, sections 7.2
// to 7.8). It appends to errs the error of the one-tick-ahead forecast of each load but the first: load minus
// forecast.
func (h *Holt) Project(loads []series.Load, errs []float64) (Projection, []float64) {
	t := holtState{level: loads[0].Effective}
	for k := 1; k < len(loads); k++ {
		in := &loads[k]
		errs = append(errs, in.Effective-t.forecast(in))
		t = h.step(t, in)
	}
	return Projection{Level: t.level, Slope: t.slope, Lasts: math.Inf(1), Max: math.Inf(1)}, errs
}

// step returns the state after one more load.
func (h *Holt) step(previous holtState, in *series.Load) holtState {
	forecast := previous.forecast(in)
	alpha, beta := h.LevelDown, h.TrendDown
	if in.Effective > forecast {
		alpha, beta = h.LevelUp, h.TrendUp
	}
	var t holtState
	t.level = alpha*in.Effective + (1-alpha)*forecast
	t.slope = beta*(t.level-previous.level-in.Delta) + (1-beta)*previous.slope

	// Coming down on the input, the trend dies out, so that the level lands without bouncing back up (7.6).
	if gap := t.level - in.Effective; gap > 0 {
		t.slope *= gap / (gap + math.Abs(t.slope) + dampingEpsilon)
	}
	// A clipped metric hides growth: cap the level at the visible maximum and let the trend only rise (7.8).
	if s := h.Saturation; s.Enabled {
		n := float64(in.Active)
		if in.Raw >= n*h.Model.Load(s.Max*(1-s.Zone)) {
			t.level = min(t.level, n*h.Model.Load(s.Max))
			t.slope = max(t.slope, previous.slope)
		}
	}
	return t
}

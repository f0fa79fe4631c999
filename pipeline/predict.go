package pipeline

import (
	"math"

	"github.com/foresail/foresail/pipeline/series"
)

// trend is the state of Holt's method: the smoothed load and its change per tick (paper, section 7.2).
type trend struct{ level, slope float64 }

// dampingEpsilon keeps the dampening factor defined where gap and trend are both zero (paper, section 7.6).
const dampingEpsilon = 1e-9

// forecast is what the load of the tick after is taken to be, before it is known.
func (t trend) forecast(next *series.Load) float64 { return t.level + t.slope + next.Delta }

// predict runs Holt's method over the loads and returns its state after the last of them (paper, sections 7.2 to 7.8).
// It appends to missed what each load but the first was above what had been forecast of it a tick before.
func (p *Params) predict(loads []series.Load, missed []float64) (trend, []float64) {
	t := trend{level: loads[0].Effective}
	for k := 1; k < len(loads); k++ {
		in := &loads[k]
		missed = append(missed, in.Effective-t.forecast(in))
		t = p.step(t, in)
	}
	return t, missed
}

func (p *Params) step(previous trend, in *series.Load) trend {
	forecast := previous.forecast(in)
	alpha, beta := p.LevelDown, p.TrendDown
	if in.Effective > forecast {
		alpha, beta = p.LevelUp, p.TrendUp
	}
	var t trend
	t.level = alpha*in.Effective + (1-alpha)*forecast
	t.slope = beta*(t.level-previous.level-in.Delta) + (1-beta)*previous.slope

	// Coming down on the input, the trend dies out, so that the level lands without bouncing back up (7.6).
	if gap := t.level - in.Effective; gap > 0 {
		t.slope *= gap / (gap + math.Abs(t.slope) + dampingEpsilon)
	}
	// A clipped metric hides growth: hold the level at what it can show and let the trend only rise (7.8).
	if s := p.Saturation; s.Enabled {
		n := float64(in.Active)
		if in.Raw >= n*p.Model.Load(s.Max*(1-s.Zone)) {
			t.level = min(t.level, n*p.Model.Load(s.Max))
			t.slope = max(t.slope, previous.slope)
		}
	}
	return t
}

package series

import "math"

// ModelKind names a metric model: how a per-instance value relates to the aggregate load (paper, sections 3 and 11).
type ModelKind string

// The metric models there are.
const (
	Linear    ModelKind = "Linear"    // g(v) = v: sum and average
	Overhead  ModelKind = "Overhead"  // g(v) = v − b: a baseline b of every instance does not redistribute
	Quadratic ModelKind = "Quadratic" // g(v) = v², v ≥ 0: cost grows with the square of the metric
)

// Model is a metric model built on a strictly increasing function g (paper, section 11.1). The zero value is Linear.
type Model struct {
	Kind     ModelKind
	Baseline float64 // b of the Overhead model, in units of the metric
}

// Load is g(v): what an instance whose metric reads v adds to the aggregate.
func (m Model) Load(v float64) float64 {
	switch m.Kind {
	case Overhead:
		return v - m.Baseline
	case Quadratic:
		return v * v
	default:
		return v
	}
}

// value is g⁻¹(x). A load below the range of g (a smoothed level may dip there) reads as the bottom of the range.
func (m Model) value(x float64) float64 {
	switch m.Kind {
	case Overhead:
		return x + m.Baseline
	case Quadratic:
		return math.Sqrt(max(0, x))
	default:
		return x
	}
}

// PerInstance is P(S, N) = g⁻¹(S/N): the metric that n instances read when they share the aggregate load s equally.
func (m Model) PerInstance(s, n float64) float64 { return m.value(s / n) }

// Required is N(S, τ) = S/g(τ): how many instances, as a real number, hold the metric at threshold under the load s.
func (m Model) Required(s, threshold float64) float64 { return s / m.Load(threshold) }

// Loads returns g(v) of the values at the given ticks, at the same ticks. It may return the values themselves;
// otherwise it works in out, which must be as long.
func (m Model) Loads(values []float64, at Ticks, out []float64) []float64 {
	switch m.Kind {
	case Overhead:
		for k := at.From; k < at.To; k++ {
			out[k] = values[k] - m.Baseline
		}
	case Quadratic:
		for k := at.From; k < at.To; k++ {
			out[k] = values[k] * values[k]
		}
	default:
		return values
	}
	return out
}

// InRange reports whether g is defined at v. Samples out of range are dropped.
func (m Model) InRange(v float64) bool { return m.Lowest() <= v && v <= math.MaxFloat64 }

// Lowest returns the bottom of the range of g; its top is the largest number there is.
func (m Model) Lowest() float64 {
	if m.Kind == Quadratic {
		return 0
	}
	return -math.MaxFloat64
}

// Saturation describes a metric that cannot rise above Max (v_max); within Zone (σ_z, a share of Max) of it the
// reading is taken to be clipped (paper, section 7.8).
type Saturation struct {
	Enabled   bool
	Max, Zone float64
}

package series

import "math"

// ModelKind names a metric model: how the value of an instance relates to the aggregate load (paper, sections 3
// and 11).
type ModelKind string

// The metric models.
const (
	Linear    ModelKind = "Linear"    // g(v) = v: sum and average
	Overhead  ModelKind = "Overhead"  // g(v) = v − b: the baseline b of each instance is not redistributed
	Quadratic ModelKind = "Quadratic" // g(v) = v², v ≥ 0: cost grows with the square of the metric
)

// Model is a metric model built on a strictly increasing function g (paper, section 11.1). The zero value is Linear.
type Model struct {
	Kind     ModelKind
	Baseline float64 // b of the Overhead model, in units of the metric
}

// Load returns g(v): the part of the aggregate of an instance whose metric reads v.
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

// value returns g⁻¹(x). A load below the range of g, as a smoothed level may be, gives the bottom of the range.
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

// PerInstance returns P(S, N) = g⁻¹(S/N): the metric that each of n instances reads if they share the load s
// equally.
func (m Model) PerInstance(s, n float64) float64 { return m.value(s / n) }

// Required returns N(S, τ) = S/g(τ): the number of instances, as a real number, that keep the metric at
// threshold under the load s.
func (m Model) Required(s, threshold float64) float64 { return s / m.Load(threshold) }

// Loads returns g(v) of the values at the given ticks, at the same indexes. It may return the values
// themselves; otherwise it writes to out, which must have the same length.
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

// InRange reports whether g is defined at v. Samples outside the range are dropped.
func (m Model) InRange(v float64) bool { return m.Lowest() <= v && v <= math.MaxFloat64 }

// Lowest returns the bottom of the range of g; the top is the largest float64.
func (m Model) Lowest() float64 {
	if m.Kind == Quadratic {
		return 0
	}
	return -math.MaxFloat64
}

// Saturation describes a metric that cannot rise above Max (v_max). A reading within Zone (σ_z, a share of Max)
// of it counts as clipped (paper, section 7.8).
type Saturation struct {
	Enabled   bool
	Max, Zone float64
}

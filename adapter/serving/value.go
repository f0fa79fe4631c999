package serving

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// The metrics that doors serve; see the package comment.
const (
	LoadTotal = "predicted_load_total"
	Load      = "predicted_load"
	Replicas  = "predicted_replicas"
)

// Metrics returns the names of all metrics.
func Metrics() []string { return []string{LoadTotal, Load, Replicas} }

// Value returns a metric of one PredictedMetric in milli-units, rounded so that an HPA computes the number of instances
// that the pipeline requires. It does not judge freshness; Check does. Errors are of type *Error.
func Value(metric string, s *snapshot.Snapshot) (milli int64, err error) {
	switch metric {
	case LoadTotal, Load:
		switch {
		case metric == Load && !s.PodsLost.IsZero():
			return 0, podsLost(s)
		case metric == Load && s.Ready <= 0:
			return 0, noReadyPods(s)
		}
		d, err := newDemand(s.Forecast.ServedLoad, s.Threshold)
		switch {
		case err != nil:
			return 0, outOfRange(s, metric, err)
		case metric == Load:
			return d.perPod(int64(s.Ready)), nil
		}
		return d.total(), nil
	case Replicas:
		if !s.HasDecision() {
			return 0, noReplicas(s)
		}
		if !s.Combined.Decided() {
			return 0, notJoined(s)
		}
		return 1000 * int64(s.Combined.Desired), nil
	default:
		return 0, unknownMetric(metric)
	}
}

// Target returns the target in milli-units by which an HPA divides a metric of one PredictedMetric,
// of the type that the package comment names. It follows from the spec alone, so it is there
// without a forecast; without a valid threshold there is none. Errors are of type *Error.
func Target(metric string, s *snapshot.Snapshot) (milli int64, err error) {
	switch metric {
	case LoadTotal, Load:
		tau, err := wholeThreshold(s.Threshold)
		if err != nil {
			return 0, noTarget(s, metric, err)
		}
		return tau, nil
	case Replicas:
		return 1000, nil
	default:
		return 0, unknownMetric(metric)
	}
}

// demand is a load, expressed as the number of instances that carry it at the threshold: steps/per, rounded up.
type demand struct {
	steps, per int64
	threshold  int64 // per instance, in milli-units
}

// slack is by how much a number of instances may exceed a whole number and still count as that; the
// pipeline has the same.
const slack = 1e-9

const (
	// limit bounds loads and thresholds in milli-units: sums of two still fit an int64. It is 4 PiB of memory.
	limit = 1 << 62
	// exact is the number of milli-units from which on a float64, in which clients calculate, may be a milli-unit off.
	exact = 1 << 50
)

// newDemand rounds the number of instances that carry a load up to three significant digits. The
// steps divide an instance evenly, so ⌈steps/per⌉ is ⌈load/threshold⌉.
func newDemand(load, threshold float64) (demand, error) {
	tau, err := wholeThreshold(threshold)
	if err != nil {
		return demand{}, err
	}
	instances := max(0, load/threshold-slack)
	if !(instances*float64(tau) <= limit) {
		return demand{}, fmt.Errorf("the load %v must be a number up to %d", load, int64(limit/1000))
	}
	per := stepsPerInstance(instances)
	return demand{steps: int64(math.Ceil(instances * float64(per))), per: per, threshold: tau}, nil
}

// wholeThreshold returns the threshold in milli-units.
func wholeThreshold(threshold float64) (int64, error) {
	tau := thresholdMilli(threshold)
	if !(tau >= 1 && tau <= limit) {
		return 0, fmt.Errorf("the threshold %v must be between 0.001 and %d", threshold, int64(limit/1000))
	}
	return int64(tau), nil
}

// thresholdMilli returns the threshold in milli-units as the HPA reads a target of the same value:
// rounded up, after the error of the conversion from decimal is removed.
func thresholdMilli(threshold float64) float64 {
	milli := threshold * 1000
	if whole := math.Round(milli); math.Abs(milli-whole) <= slack*whole {
		return whole
	}
	return math.Ceil(milli)
}

// stepsPerInstance returns a resolution of three significant digits, no finer than a thousandth and
// no coarser than an instance.
func stepsPerInstance(instances float64) int64 {
	switch {
	case instances < 1:
		return 1000
	case instances < 10:
		return 100
	case instances < 100:
		return 10
	default:
		return 1
	}
}

// instances is ⌈steps/per⌉.
func (d demand) instances() int64 { return ceilDiv(d.steps, d.per) }

// total returns the load in milli-units. ⌈total/threshold⌉ is instances: rounding up to a whole
// milli-unit cannot pass a multiple of the threshold, which is whole.
func (d demand) total() int64 { return below(d.over(d.per)) }

// over returns ⌈steps × threshold/by⌉ for by ≥ per.
func (d demand) over(by int64) int64 {
	high, low := bits.Mul64(uint64(d.steps), uint64(d.threshold)) // #nosec G115 -- neither is negative
	low, carry := bits.Add64(low, uint64(by-1), 0)                // #nosec G115 -- by is 1 or more
	quotient, _ := bits.Div64(high+carry, low, uint64(by))        // #nosec G115 -- as above
	return int64(quotient)                                        // #nosec G115 -- limit bounds the load
}

// below lowers a value that float64 cannot represent exactly by a share that exceeds all rounding errors of clients,
// so that the quotient of a multiple of the threshold does not exceed the whole number that it is.
func below(milli int64) int64 {
	if milli < exact {
		return milli
	}
	return milli - milli>>40
}

// perPod returns the load that each of the ready pods would carry, in milli-units. The HPA
// multiplies it by ready again. Where rounding up by one milli-unit would make that one instance
// more, it rounds down.
func (d demand) perPod(ready int64) int64 {
	v := below(d.over(d.per * ready))
	required := d.instances()
	if d.scaledBy(v, ready) > required && d.scaledBy(v-1, ready) == required {
		return v - 1
	}
	return v
}

// scaledBy returns the replicas that the HPA computes from a value of type Value, in its own floating-point arithmetic.
func (d demand) scaledBy(value, ready int64) int64 {
	return int64(math.Ceil(float64(value) / float64(d.threshold) * float64(ready)))
}

// ceilDiv is ⌈a/b⌉ for a ≥ 0 and b > 0.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

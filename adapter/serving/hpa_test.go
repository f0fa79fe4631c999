package serving

import "math"

// hpa is the arithmetic of the HPA controller for one external metric (v1.37, replica_calculator.go). All values are in
// milli-units, as the controller has them.
type hpa struct {
	target    int64
	tolerance float64 // upwards and downwards
}

func (h hpa) within(ratio float64) bool { return 1-h.tolerance <= ratio && ratio <= 1+h.tolerance }

// average is the count for a target of type AverageValue at status.replicas.
func (h hpa) average(usage, replicas int64) int64 {
	if h.within(float64(usage) / (float64(h.target) * float64(replicas))) {
		return replicas
	}
	return int64(math.Ceil(float64(usage) / float64(h.target)))
}

// value is the count for a target of type Value at spec.replicas, of which ready are Running and Ready.
func (h hpa) value(usage, replicas, ready int64) int64 {
	ratio := float64(usage) / float64(h.target)
	if h.within(ratio) {
		return replicas
	}
	return int64(math.Ceil(ratio * float64(ready)))
}

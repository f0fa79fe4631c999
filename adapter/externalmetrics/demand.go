package externalmetrics

import (
	"fmt"
	"math"
)

// demand is a load as the number of instances that it takes at the threshold, rounded up to steps/per.
type demand struct {
	steps, per int64
	threshold  int64 // per instance, in milli-units
}

// slack is how far above a whole number of instances still counts as that number; the pipeline has the same.
const slack = 1e-9

// limit bounds what is computed in milli-units: products of it with small numbers still fit an int64.
const limit = 1 << 53

// newDemand quantises a load to three significant digits of the number of instances that it takes, upwards. Since the
// steps divide an instance evenly, ⌈steps/per⌉ is ⌈load/threshold⌉.
func newDemand(load, threshold float64) (demand, error) {
	tau := thresholdMilli(threshold)
	if !(tau >= 1 && tau <= limit) {
		return demand{}, fmt.Errorf("the threshold %v is not between 0.001 and %d", threshold, int64(limit/1000))
	}
	instances := max(0, load/threshold-slack)
	if !(instances*tau <= limit) {
		return demand{}, fmt.Errorf("a load of %v is not a number up to %d", load, int64(limit/1000))
	}
	per := stepsPerInstance(instances)
	return demand{steps: int64(math.Ceil(instances * float64(per))), per: per, threshold: int64(tau)}, nil
}

// thresholdMilli is the threshold in milli-units as the HPA reads a target of the same value: rounded up, once the
// error of the conversion from decimal has been taken away.
func thresholdMilli(threshold float64) float64 {
	milli := threshold * 1000
	if whole := math.Round(milli); math.Abs(milli-whole) <= slack*whole {
		return whole
	}
	return math.Ceil(milli)
}

// stepsPerInstance makes steps of a thousandth to a hundredth of the number, but of no more than one instance.
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

// total is the load in milli-units. ⌈total/threshold⌉ is instances, since rounding up to a whole milli-unit cannot pass
// a multiple of the threshold, which is whole.
func (d demand) total() int64 { return ceilDiv(d.steps*d.threshold, d.per) }

// perPod is the load that each of the ready pods would carry, in milli-units. The HPA multiplies it by ready again;
// where the rounding up of one milli-unit would come out as one instance more, it is rounded down.
func (d demand) perPod(ready int64) int64 {
	v := ceilDiv(d.steps*d.threshold, d.per*ready)
	want := d.instances()
	if d.scaledBy(v, ready) > want && d.scaledBy(v-1, ready) == want {
		return v - 1
	}
	return v
}

// scaledBy is what the HPA makes of a value of type Value, in its own floating-point arithmetic.
func (d demand) scaledBy(value, ready int64) int64 {
	return int64(math.Ceil(float64(value) / float64(d.threshold) * float64(ready)))
}

// ceilDiv is ⌈a/b⌉ for a ≥ 0 and b > 0.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

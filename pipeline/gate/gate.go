// Package gate rejects readings of a metric that cannot be a load. A rejected reading is unknown: it is neither a load
// nor zero.
//
// [Limits] checks a single reading when it arrives: its sign, its size and the maximum that the spec declares.
// [Filter] checks the readings of a window together, before each forecast: a reading far above all others is accepted
// once another one confirms it. Both are pure, so replicas with the same samples make the same forecast.
package gate

import (
	"fmt"
	"math"

	"github.com/foresail/foresail/pipeline"
)

const (
	// rounding is how far below 0 a reading may be because of rounding in a recording rule, as a share of an ordinary
	// reading. maxRounding bounds that in any unit, because many exporters report -1 for an unknown value.
	rounding, maxRounding = 1e-8, 0.5
	// maxExcess and maxRateExcess are the factors of the declared maximum up to which a reading, and a rate of a counter,
	// is accepted: a reading may be rounded, and a rate is off by up to half if scrapes are late.
	maxExcess, maxRateExcess = 1.1, 1.5
	// maxInstances bounds the instances that one reading may require: Kubernetes counts replicas in an int32.
	maxInstances = math.MaxInt32
	// maxLoad bounds the load of one reading so that sums over all pods are finite as float32, in which loads are stored.
	maxLoad = 1e30
)

// Impossible is an error about a reading that cannot be a load.
type Impossible struct {
	Value  float64
	Accept string // the accepted values, and what to do
}

// Error implements error.
func (e *Impossible) Error() string {
	return fmt.Sprintf("a reading is %.6g: must be %s", e.Value, e.Accept)
}

// Number returns a reading that is finite and not negative, and otherwise an *Impossible. Negative loads are
// rejected because they would cancel the load of other pods. A reading slightly below 0 is rounded to 0; unit
// is the size of an ordinary reading.
func Number(v, unit float64) (float64, error) {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, &Impossible{v, "a finite number"}
	case v < -min(rounding*unit, maxRounding):
		return 0, &Impossible{v, "0 or more, as a negative load is taken for unknown; have a recording rule add an offset " +
			"if the metric is signed, or clamp it at 0"}
	}
	return max(0, v), nil
}

// Unit returns the unit of [Number] for readings whose threshold is not known: the highest of them, and at
// least minUnit.
func Unit(minUnit float64, readings []pipeline.Sample) float64 {
	for _, x := range readings {
		if x.V > minUnit && !math.IsInf(x.V, 0) {
			minUnit = x.V
		}
	}
	return minUnit
}

// Limits bounds a single reading of a PredictedMetric. The zero value accepts only 0.
type Limits struct {
	unit     float64 // the threshold
	highest  float64
	declared float64 // saturation; 0 without one
}

// LimitsOf returns the limits that follow from parameters. counted means that readings are rates of a counter.
func LimitsOf(p *pipeline.Params, counted bool) Limits {
	unit := p.Model.Load(p.Threshold)
	l := Limits{unit: p.Threshold, highest: p.Model.PerInstance(min(maxLoad, maxInstances*unit), 1)}
	if p.Saturation.Enabled {
		l.declared = p.Saturation.Max
		excess := maxExcess
		if counted {
			excess = maxRateExcess
		}
		l.highest = min(l.highest, excess*l.declared)
	}
	return l
}

// Check returns a reading that is possible, and otherwise an *Impossible.
func (l Limits) Check(v float64) (float64, error) {
	v, err := Number(v, l.unit)
	switch {
	case err != nil:
		return 0, err
	case v <= l.highest:
		return v, nil
	case l.declared > 0:
		return 0, &Impossible{v, fmt.Sprintf("at most saturation (%.6g); raise that, or leave it out, "+
			"if the metric can be higher", l.declared)}
	}
	return 0, &Impossible{v, fmt.Sprintf("at most %.6g, as no number of replicas carries more; "+
		"check the metric, its type and its unit", l.highest)}
}

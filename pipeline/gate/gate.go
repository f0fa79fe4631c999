// Package gate decides which readings of a metric can be a load. What cannot be one is unknown: it is neither load nor
// zero.
//
// [Limits] judge a reading by itself, when it arrives: its sign, its size and the maximum that the spec declares.
// [Filter] judges the readings of a window together, before each forecast: a reading far above everything else counts
// once another one repeats it. Both are pure, so that replicas with the same samples come to the same forecast.
package gate

import (
	"fmt"
	"math"

	"github.com/foresail/foresail/pipeline"
)

const (
	// rounding is how far below 0 a reading may be that the arithmetic of a recording rule has made of 0, as a share of
	// an ordinary reading. maxRounding bounds that in any unit, as many exporters report -1 for an unknown value.
	rounding, maxRounding = 1e-8, 0.5
	// maxExcess and maxRateExcess are the shares of the declared maximum that a reading, and a rate of a counter, may
	// reach: the one may be rounded, the other is inexact by half if scrapes are answered late.
	maxExcess, maxRateExcess = 1.1, 1.5
	// maxInstances bounds what one reading may require: Kubernetes counts replicas in an int32.
	maxInstances = math.MaxInt32
	// maxLoad bounds the load of one reading so that sums over all pods are finite in float32, in which loads are kept.
	maxLoad = 1e30
)

// Impossible is a reading that cannot be a load.
type Impossible struct {
	Value  float64
	Accept string // what it must be, and what to do
}

// Error implements error.
func (e *Impossible) Error() string {
	return fmt.Sprintf("a reading is %.6g: must be %s", e.Value, e.Accept)
}

// Number returns a reading that is finite and not below 0, and otherwise an *Impossible. A negative load does not
// exist: it would cancel the load of other pods. What is hardly below 0, for readings that are ordinarily like unit, is
// 0.
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

// Unit returns the unit of [Number] for readings whose threshold is not known: the highest of them, at least least.
func Unit(least float64, readings []pipeline.Sample) float64 {
	for _, x := range readings {
		if x.V > least && !math.IsInf(x.V, 0) {
			least = x.V
		}
	}
	return least
}

// Limits are what one reading of a PredictedMetric can be. The zero value accepts nothing but 0.
type Limits struct {
	unit     float64 // the threshold
	highest  float64
	declared float64 // saturation; 0 without one
}

// LimitsOf returns the limits that follow from parameters. Readings are rates of a counter if counted is set.
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

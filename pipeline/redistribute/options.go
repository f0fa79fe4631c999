// Package redistribute is stage three of the pipeline (paper, section 6): it adds the values of a window (in units of
// the metric) up to one load per tick (in units of the model's aggregate). Load that moves between instances while they
// start and end must not look like a change of the total.
//
// The stage exists twice: [Weighted] is the paper's, [Total] is used by the adaptive method.
package redistribute

import (
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// Options configure the stage.
type Options struct {
	Model      series.Model
	Timeout    time.Duration     // T_R, the age from which a new instance counts in full
	Shape      float64           // κ, used by Weighted; 0 is a straight line
	Saturation series.Saturation // used by Total
}

// Weight returns w(a), the weight of an instance of some age (paper, section 6.3).
func (o *Options) Weight(age time.Duration) float64 { return newRamp(o).at(series.Millis(age)) }

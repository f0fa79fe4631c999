// Package redistribute is stage three of the pipeline (paper, section 6): it adds the values of a window, in units of
// the metric, up to one load for each tick, in units of the model's aggregate. Load that moves between instances while
// they start and end must not look like a change of the whole.
//
// The stage exists twice: [Weighted] is the paper's, [Total] that of the adaptive method.
package redistribute

import (
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// Options configure the stage.
type Options struct {
	Model      series.Model
	Timeout    time.Duration     // T_R, the time after which a new instance counts in full
	Shape      float64           // κ of Weighted; 0 is a straight line
	Saturation series.Saturation // of Total
}

// Weight returns w(a), the weight of an instance of an age (paper, section 6.3).
func (o *Options) Weight(age time.Duration) float64 { return newRamp(o).at(series.Millis(age)) }

package pipeline

import "github.com/foresail/foresail/pipeline/series"

// The nouns of an Input and of Params, for readers that know this package alone.
type (
	Sample     = series.Sample
	Instance   = series.Instance
	Model      = series.Model
	ModelKind  = series.ModelKind
	Saturation = series.Saturation
)

// Never is the time of an event that has not happened.
const Never = series.Never

// The metric models there are.
const (
	Linear    = series.Linear
	Overhead  = series.Overhead
	Quadratic = series.Quadratic
)

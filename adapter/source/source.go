// Package source holds what every source of samples shares. Each source lives in a package of its own below this one
// and feeds a Sink; sources never import each other.
package source

import "github.com/foresail/foresail/pipeline"

// Sink takes what a source has read for one PredictedMetric. Implementations are safe for concurrent use and return
// at once.
type Sink interface {
	// Append adds samples of one instance (an ID as package instances gives it), in any order. The slice is the
	// caller's again when it returns.
	Append(instance string, samples ...pipeline.Sample)
	// Fail reports that an instance could not be read. It changes no data; it ends up in status and metrics.
	Fail(instance string, err error)
	// Trouble reports what keeps the source as a whole from being read, or nil once nothing does any more. It
	// changes no data either.
	Trouble(err error)
}

// Type says how readings become samples.
type Type string

// The types of metrics that are read.
const (
	Gauge   Type = "Gauge"   // a reading is a sample
	Counter Type = "Counter" // the rate per second between two readings is a sample
)

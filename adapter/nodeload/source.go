package nodeload

import (
	"context"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// Resource is what is forecast of a node.
type Resource string

// The resources there are.
const (
	CPU    Resource = "cpu"    // in cores
	Memory Resource = "memory" // the working set, in bytes
)

// Reading is what a source has read of one resource of one node.
type Reading struct {
	Node     string // its name
	Resource Resource
	Window   time.Duration     // each sample is the mean over this time before it, or from some time within; 0: it is of that moment
	Samples  []pipeline.Sample // in order; some may have been read before
}

// Source is where what nodes use is read.
type Source interface {
	// Read returns what has become known since the last call, or all of the window where that can be had. Where a part
	// could be read there are readings beside an error. It is called by one at a time, about once an interval.
	Read(ctx context.Context, now time.Time) ([]Reading, error)
}

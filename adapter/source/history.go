package source

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

// Historian is a source that knows what a load was before it was followed.
type Historian interface {
	// History reads the load of a key, which has been set, over a span that ends minutes ago. What was
	// read before an error is returned with it. Errors are ErrAmbiguous if it cannot be known which
	// part of the stored load was that of the target.
	History(ctx context.Context, key types.NamespacedName, p *pipeline.Params, span time.Duration) (History, error)
}

// ErrAmbiguous is returned if a history cannot be separated from the load of other targets.
var ErrAmbiguous = errors.New("the stored load cannot be separated from the load of others")

// History is the load of a target in the past, by the minute.
type History struct {
	Begin   int64 // of the first minute (ms)
	Minutes []pipeline.Minute
	Points  int // that the answers had
	Queries int
}

// Known returns the time for which the load is known.
func (h *History) Known() time.Duration {
	known := time.Duration(0)
	for _, m := range h.Minutes {
		if m.Mean >= 0 { // not NaN
			known += time.Minute
		}
	}
	return known
}

package forecaster

import (
	"errors"
	"fmt"
	"time"

	"github.com/foresail/foresail/pipeline"
)

const (
	originSize = 16
	// MaxCheckpoint is the size of the largest checkpoint in bytes.
	MaxCheckpoint = originSize + pipeline.MaxCheckpoint
	// aheadLimit is how far ahead of the clock the loads of a checkpoint may be: clocks of replicas differ.
	aheadLimit = time.Minute
)

// Errors of checkpoints that are not for a PredictedMetric as it is.
var (
	ErrNotFollowed = errors.New("the PredictedMetric is not followed")
	errOther       = errors.New("the checkpoint is of another source or target, or of another kind of load")
)

// Checkpoint stores what has been learned of the load of a PredictedMetric.
type Checkpoint struct {
	Data    []byte
	Learned time.Duration // the span for which the load is known
	newest  int64         // the time of the newest load (ms)
}

// learnedLoad is the past of one load, and how much of it a checkpoint has.
type learnedLoad struct {
	past     *pipeline.Learned // nil before the first forecast
	resolved bool              // it is known whether there is a checkpoint
	stored   int64             // the newest load of the checkpoint that is known of (ms)
}

// of returns what has been learned, for a forecast with the parameters.
func (l *learnedLoad) of(p *pipeline.Params) *pipeline.Learned {
	if l.past == nil {
		l.past = pipeline.NewLearned(p)
	}
	return l.past
}

// rewind drops what was learned of times ahead of now.
func (l *learnedLoad) rewind(now time.Time) {
	if l.past != nil {
		l.past.Rewind(now.UnixMilli())
	}
	l.stored = min(l.stored, now.UnixMilli())
}

// isNews reports whether there is more to store than a checkpoint has, or could have.
func (l *learnedLoad) isNews() bool {
	return l.resolved && l.past != nil && l.past.Known() > 0 && l.past.Newest() > l.stored
}

// adopt goes on from the past of a checkpoint, if that is worth it, and returns whether it does.
func (l *learnedLoad) adopt(past *pipeline.Learned, first, follow bool, p *predictor, now time.Time) (bool, error) {
	newest := past.Newest()
	ahead := time.UnixMilli(newest).Sub(now)
	switch {
	case ahead <= max(aheadLimit, 2*p.settings.Load().Params.Interval):
	case !first:
		return false, fmt.Errorf("the loads of the checkpoint are %s ahead of the clock", ahead.Round(time.Second))
	default: // it was written while a clock was ahead: only the earlier loads count
		past.Rewind(now.UnixMilli())
		newest = past.Newest()
	}
	adopt := false
	switch {
	case first:
		adopt = l.past == nil || l.past.Known() < past.Known() || l.past.Newest() < newest
	case follow: // what came since is still in the window: of an older one something would be missing
		adopt = newest > l.stored && newest >= now.Add(-p.window).UnixMilli()
	}
	l.stored = max(l.stored, newest)
	if adopt {
		l.past = past
	}
	return adopt, nil
}

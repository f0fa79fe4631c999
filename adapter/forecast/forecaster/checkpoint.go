package forecaster

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

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

// Checkpoint is what has been learned of the load of a PredictedMetric.
type Checkpoint struct {
	Data    []byte
	Learned time.Duration // for how long the load is known
	newest  int64         // the time of the newest load (ms)
}

// Checkpoint returns what has been learned of a load; false if that is nothing, nothing since Saved, or not known yet to be more than a
// checkpoint of it has (Restore, NoCheckpoint).
func (f *Forecaster) Checkpoint(key types.NamespacedName) (Checkpoint, bool) {
	feed := f.feed(key)
	if feed == nil {
		return Checkpoint{}, false
	}
	return feed.checkpoint()
}

// Saved says that a checkpoint has been stored.
func (f *Forecaster) Saved(key types.NamespacedName, c Checkpoint) {
	if feed := f.feed(key); feed != nil {
		feed.saved(c.newest)
	}
}

// Restore has a PredictedMetric go on from what a checkpoint says was learned of its load, if it knows less, or is behind. If it follows,
// it also does so from each newer checkpoint: that of the replica which is elected. It returns whether it does.
func (f *Forecaster) Restore(key types.NamespacedName, data []byte, follow bool) (bool, error) {
	feed := f.feed(key)
	if feed == nil {
		return false, ErrNotFollowed
	}
	return feed.restore(data, follow)
}

// NoCheckpoint says that there is none of a load.
func (f *Forecaster) NoCheckpoint(key types.NamespacedName) {
	if feed := f.feed(key); feed != nil {
		feed.look(func() { feed.sought = true })
	}
}

// Forget has the load of a PredictedMetric learned anew.
func (f *Forecaster) Forget(key types.NamespacedName) {
	if feed := f.feed(key); feed != nil {
		feed.look(func() { feed.past, feed.stored = nil, 0 })
	}
}

// WithoutCheckpoint returns the PredictedMetrics of which nobody has said yet what their checkpoint is, or that there is none.
func (f *Forecaster) WithoutCheckpoint() (keys []types.NamespacedName) {
	for _, feed := range f.all() {
		feed.look(func() {
			if !feed.sought && feed.settings.Load().pipeline != nil {
				keys = append(keys, feed.key)
			}
		})
	}
	return keys
}

// look calls a function between two forecasts.
func (f *Feed) look(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// originOf identifies where samples come from: what was learned of others is of no use.
func (c *Config) originOf() []byte {
	sum := sha256.Sum256([]byte(c.Origin))
	return sum[:originSize]
}

func (f *Feed) checkpoint() (Checkpoint, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.sought || f.past == nil || f.past.Known() == 0 || f.past.Newest() <= f.stored {
		return Checkpoint{}, false
	}
	c, err := f.settings.Load().Checkpoint(f.past)
	return c, err == nil // of a load that it has no room for no forecast is made either
}

// Checkpoint returns the checkpoint of what was learned of the load of a PredictedMetric.
func (c *Config) Checkpoint(past *pipeline.Past) (Checkpoint, error) {
	data, err := past.MarshalBinary()
	return Checkpoint{Data: append(c.originOf(), data...), Learned: past.Known(), newest: past.Newest()}, err
}

func (f *Feed) saved(newest int64) {
	f.look(func() { f.stored = max(f.stored, newest) })
}

func (f *Feed) restore(data []byte, follow bool) (bool, error) {
	now := f.now()
	past, err := f.read(data)
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !f.sought
	f.sought = true
	if err != nil {
		return false, err
	}
	newest := past.Newest()
	ahead := time.UnixMilli(newest).Sub(now)
	switch {
	case ahead <= max(aheadLimit, 2*f.settings.Load().Params.Interval):
	case !first:
		return false, fmt.Errorf("the loads of the checkpoint are %s ahead of the clock", ahead.Round(time.Second))
	default: // it was written while a clock was ahead: what was learned before that is all there is
		past.Rewind(now.UnixMilli())
		newest = past.Newest()
	}
	adopt := false
	switch {
	case first:
		adopt = f.past == nil || f.past.Known() < past.Known() || f.past.Newest() < newest
	case follow: // what came since is still in the window: of an older one something would be missing
		adopt = newest > f.stored && newest >= now.Add(-f.window).UnixMilli()
	}
	f.stored = max(f.stored, newest)
	if adopt {
		f.past = past
	}
	return adopt, nil
}

// read returns what a checkpoint for this feed says.
func (f *Feed) read(data []byte) (*pipeline.Past, error) {
	c := f.settings.Load()
	if len(data) < originSize || !bytes.Equal(data[:originSize], c.originOf()) {
		return nil, errOther
	}
	past := new(pipeline.Past)
	if err := past.UnmarshalBinary(data[originSize:]); err != nil {
		return nil, err
	}
	if !past.Fits(c.Params.Learning()) {
		return nil, errOther
	}
	return past, nil
}

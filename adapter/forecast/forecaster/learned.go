package forecaster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

// Learned gives access to the learned loads: checkpoints store it, and histories add to it.
type Learned struct{ feeds *registry }

// Checkpoint returns what has been learned of a load; false if that is nothing, nothing since
// Saved, or not known yet to be more than a checkpoint of it has (Restore, NoCheckpoint).
func (l Learned) Checkpoint(key types.NamespacedName) (c Checkpoint, ok bool) {
	feed := l.feeds.get(key)
	if feed == nil {
		return c, false
	}
	feed.look(func() {
		if learned := &feed.predictor.learned; learned.isNews() {
			var err error
			c, err = feed.settings.Load().Checkpoint(learned.past)
			ok = err == nil // of a load that it has no room for no forecast is made either
		}
	})
	return c, ok
}

// Saved records that a checkpoint has been stored.
func (l Learned) Saved(key types.NamespacedName, c Checkpoint) {
	l.look(key, func(load *learnedLoad) { load.stored = max(load.stored, c.newest) })
}

// Restore lets a PredictedMetric continue from a checkpoint of its load, if it knows less, or is
// behind. If it follows, it also continues from each newer checkpoint: that of the elected replica.
// It reports whether it did.
func (l Learned) Restore(key types.NamespacedName, data []byte, follow bool) (adopted bool, err error) {
	feed := l.feeds.get(key)
	if feed == nil {
		return false, ErrNotFollowed
	}
	now := feed.now()
	past, err := feed.settings.Load().decode(data)
	feed.look(func() {
		learned := &feed.predictor.learned
		first := !learned.resolved
		learned.resolved = true
		if err == nil {
			adopted, err = learned.adopt(past, first, follow, &feed.predictor, now)
		}
	})
	return adopted, err
}

// NoCheckpoint records that a load has none.
func (l Learned) NoCheckpoint(key types.NamespacedName) {
	l.look(key, func(load *learnedLoad) { load.resolved = true })
}

// Forget drops what was learned of a load.
func (l Learned) Forget(key types.NamespacedName) {
	l.look(key, func(load *learnedLoad) { load.past, load.stored = nil, 0 })
}

// look calls a function with a learned load, between two forecasts. It does nothing if the load is not followed.
func (l Learned) look(key types.NamespacedName, do func(*learnedLoad)) {
	if feed := l.feeds.get(key); feed != nil {
		feed.look(func() { do(&feed.predictor.learned) })
	}
}

// WithoutCheckpoint returns the PredictedMetrics whose checkpoint has neither been read nor found missing.
func (l Learned) WithoutCheckpoint() (keys []types.NamespacedName) {
	for _, feed := range l.feeds.all() {
		feed.look(func() {
			if !feed.predictor.learned.resolved && feed.settings.Load().pipeline != nil {
				keys = append(keys, feed.key)
			}
		})
	}
	return keys
}

// Load is a load that is learned, and where it comes from.
type Load struct {
	Key            types.NamespacedName
	Source, Origin string
	Params         pipeline.Params
}

// LittleKnown returns the loads, in order of their keys, that are read, are known for less than some time and have no
// checkpoint that knows more.
func (l Learned) LittleKnown(least time.Duration) (loads []Load) {
	for _, feed := range l.feeds.all() {
		feed.look(func() {
			c, load := feed.settings.Load(), &feed.predictor.learned
			past := load.past
			read := c.pipeline != nil && past.Fits(c.Params.LearnOptions()) && past.Newest() > 0
			if load.resolved && read && past.Known() < least {
				loads = append(loads, Load{feed.key, c.Source, c.Origin, c.Params})
			}
		})
	}
	slices.SortFunc(loads, func(a, b Load) int { return byKey(a.Key, b.Key) })
	return loads
}

// Fill adds earlier minutes of a load (see [pipeline.Learned.Fill]), unless it is another load by now.
// It returns the span for which the load is known then. Nothing is filled of windows in which
// learning is disabled.
func (l Learned) Fill(load *Load, begin int64, minutes []pipeline.Minute) (known time.Duration, ok bool) {
	feed := l.feeds.get(load.Key)
	if feed == nil || !feed.readsFrom(load.Origin) {
		return 0, false
	}
	feed.look(func() {
		c, past := feed.settings.Load(), feed.predictor.learned.past
		if ok = past.Fits(load.Params.LearnOptions()) && past.Fits(c.Params.LearnOptions()); ok {
			past.Fill(begin, c.learnedOf(begin, minutes))
			known = past.Known()
		}
	})
	return known, ok
}

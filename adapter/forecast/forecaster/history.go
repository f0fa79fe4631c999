package forecaster

import (
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

// Load is a load that is learned, and where it comes from.
type Load struct {
	Key            types.NamespacedName
	Source, Origin string
	Params         pipeline.Params
}

// LittleKnown returns the loads that are read, are known for less than some time and have no checkpoint that knows more, by their keys.
func (f *Forecaster) LittleKnown(least time.Duration) (loads []Load) {
	for _, feed := range f.all() {
		feed.look(func() {
			c := feed.settings.Load()
			if feed.sought && c.pipeline != nil && feed.past.Fits(c.Params.Learning()) && feed.past.Newest() > 0 && feed.past.Known() < least {
				loads = append(loads, Load{feed.key, c.Source, c.Origin, c.Params})
			}
		})
	}
	slices.SortFunc(loads, func(a, b Load) int { return byKey(a.Key, b.Key) })
	return loads
}

// Fill adds what a load was before, by the minute (see [pipeline.Past.Fill]), unless it is another load by now. It returns for how long it is
// known then. Nothing is filled of windows in which learning is disabled.
func (f *Forecaster) Fill(l *Load, begin int64, minutes []pipeline.Minute) (known time.Duration, ok bool) {
	feed := f.feed(l.Key)
	if feed == nil || !feed.readsFrom(l.Origin) {
		return 0, false
	}
	feed.look(func() {
		c := feed.settings.Load()
		if ok = feed.past.Fits(l.Params.Learning()) && feed.past.Fits(c.Params.Learning()); ok {
			feed.past.Fill(begin, c.learnedOf(begin, minutes))
			known = feed.past.Known()
		}
	})
	return known, ok
}

// learnedOf returns the minutes, which begin at a time (ms), as not known where learning is disabled.
func (c *Config) learnedOf(begin int64, minutes []pipeline.Minute) []pipeline.Minute {
	if c.Schedules == nil {
		return minutes
	}
	out := slices.Clone(minutes)
	for i := range out {
		if c.Schedules.Unlearned(begin + int64(i)*time.Minute.Milliseconds()) {
			out[i] = pipeline.Minute{Mean: math.NaN()}
		}
	}
	return out
}

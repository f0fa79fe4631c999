package prometheus

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
)

// backfill decides which samples of its first answer a subscription takes.
type backfill struct {
	group    *group
	fleet    Fleet
	podIndex *podtracker.PodIndex
	first    time.Time // when the first answer with its samples was requested
}

// beginning returns the time from which the samples of a first answer are taken (ms).
//
// The history of a fleet is the sum over its pods. Pods that were deleted before this process began
// to track the fleet are unknown, so their load would be missing until other pods took it over,
// which would look like a rise. An ended series belonged to a deleted pod, of this fleet or another
// one. Everything before the newest such end is left out: the history is shorter, and right.
//
// An answer with warnings may lack series of such pods. Only its newest samples are taken.
func (b *backfill) beginning(own []*series, active []podtracker.Instance, partial string, t taking) int64 {
	newest, usual := latest(own), b.usualEnd(own)
	if partial != "" {
		return usual - 2*t.step
	}
	starts := startsOf(active)
	from := int64(0)
	if unready := b.fleet.UnreadySince(); !unready.IsZero() {
		from = unready.UnixMilli() + t.spacing
	}
	for _, x := range own {
		spacing := cmp.Or(x.spacing, t.spacing)
		if newest-x.last() > 2*spacing && !b.knew(x, starts) {
			from = max(from, x.last()+spacing) // it was there until then at most
		}
	}
	return min(from, usual)
}

// undecided returns whether backfill has to wait. A pod that was just deleted looks like a living pod of another
// application until two of its spacings have passed without a sample. If every series is of a pod of this fleet, or of
// one that shares the query, nothing waits.
func (b *backfill) undecided(own []*series, active []podtracker.Instance, t taking) bool {
	if b.first.IsZero() {
		b.first = t.now
	}
	newest, starts := latest(own), startsOf(active)
	came, open := false, false
	for _, x := range own {
		if _, ok := b.podIndex.Find(x.pod, x.last()); ok {
			came = true
		}
		two := 2 * cmp.Or(x.spacing, t.spacing)
		waited := t.now.Sub(b.first) > time.Duration(two+t.step)*time.Millisecond
		open = open || !waited && newest-x.last() <= two && !b.knew(x, starts)
	}
	return came && open
}

// startsOf returns the start times of instances (ms) by their IDs.
func startsOf(active []podtracker.Instance) map[string]int64 {
	starts := make(map[string]int64, len(active))
	for i := range active {
		starts[active[i].ID] = active[i].Start.UnixMilli()
	}
	return starts
}

// usualEnd returns the median of the times at which the series of the fleet's pods end. One sample that is dated ahead
// must not exclude those of all other pods.
func (b *backfill) usualEnd(own []*series) int64 {
	var ends []int64
	for _, x := range own {
		if _, ok := b.podIndex.Find(x.pod, x.last()); ok {
			ends = append(ends, x.last())
		}
	}
	return median(ends)
}

// knew returns whether a series is of a known instance of this fleet or of another one in the group, rather than of a
// deleted pod, or of one whose name another pod has now.
func (b *backfill) knew(x *series, starts map[string]int64) bool {
	if id, ok := b.podIndex.Find(x.pod, x.last()); ok {
		return starts[id] <= x.last()
	}
	return slices.ContainsFunc(b.group.list(), func(other *subscription) bool {
		_, ok := other.podIndex.Find(x.pod, x.last())
		return ok
	})
}

package prometheus

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresail/foresail/adapter/instances"
)

// beginning returns the time from which on the samples of a first answer are taken (ms).
//
// The history of a fleet is the sum over the pods that it had. Those that had gone before this process began to follow
// the fleet are not known to it, so what they carried would be missing from the sum, up to the moment when others took
// it over: too little would be served, and it would look like a rise that never was. Whose series they are can be told from their having ended. Whether
// they were of this fleet or of another one cannot, so everything before the newest such end is left out; the history
// is shorter then, and right. Once the fleet is followed it knows the pods that leave.
//
// An answer that the server warns of may lack series of such pods. Only its newest samples are taken.
func (u *subscription) beginning(own []*series, active []instances.Instance, partial string, t taking) int64 {
	newest, usual := latest(own), u.usualEnd(own)
	if partial != "" {
		return usual - 2*t.step
	}
	starts := startsOf(active)
	from := int64(0)
	if unready := u.fleet.UnreadySince(); !unready.IsZero() {
		from = unready.UnixMilli() + t.spacing
	}
	for _, x := range own {
		spacing := cmp.Or(x.spacing, t.spacing)
		if newest-x.last() > 2*spacing && !u.knew(x, starts) {
			from = max(from, x.last()+spacing) // it was there until then at most
		}
	}
	return min(from, usual)
}

// undecided tells whether it has to be waited with the history. A pod that went a moment ago looks like one of somebody
// else's that lives, until two of its spacings have gone by without a sample. Where every series is of a pod of the
// fleet, or of a fleet that shares the query, nothing is waited for.
func (u *subscription) undecided(own []*series, active []instances.Instance, t taking) bool {
	if u.first.IsZero() {
		u.first = t.now
	}
	newest, starts := latest(own), startsOf(active)
	came, open := false, false
	for _, x := range own {
		if _, ok := u.roster.Find(x.pod, x.last()); ok {
			came = true
		}
		two := 2 * cmp.Or(x.spacing, t.spacing)
		waited := t.now.Sub(u.first) > time.Duration(two+t.step)*time.Millisecond
		open = open || !waited && newest-x.last() <= two && !u.knew(x, starts)
	}
	return came && open
}

// startsOf returns when instances started (ms), by their IDs.
func startsOf(active []instances.Instance) map[string]int64 {
	starts := make(map[string]int64, len(active))
	for i := range active {
		starts[active[i].ID] = active[i].Start.UnixMilli()
	}
	return starts
}

// usualEnd returns the median of the times at which the series of the fleet's pods end: a single one that is dated ahead
// must not keep the samples of all others out.
func (u *subscription) usualEnd(own []*series) int64 {
	var ends []int64
	for _, x := range own {
		if _, ok := u.roster.Find(x.pod, x.last()); ok {
			ends = append(ends, x.last())
		}
	}
	return median(ends)
}

// knew tells whether a series is of an instance that the fleet knows, rather than of a pod that is gone, or of one whose
// name another pod now has; or whether it is of a pod of another fleet.
func (u *subscription) knew(x *series, starts map[string]int64) bool {
	if id, ok := u.roster.Find(x.pod, x.last()); ok {
		return starts[id] <= x.last()
	}
	return slices.ContainsFunc(u.group.list(), func(other *subscription) bool {
		_, ok := other.roster.Find(x.pod, x.last())
		return ok && other.namespace == u.namespace
	})
}

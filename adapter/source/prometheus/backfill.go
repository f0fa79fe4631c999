package prometheus

import (
	"cmp"

	"github.com/foresail/foresail/adapter/instances"
)

// beginning returns the time from which on the samples of a first answer are taken (ms).
//
// The history of a fleet is the sum over the pods that it had. Those that had gone before this process began to follow
// the fleet are not known to it, so what they carried would be missing from the sum, up to the moment when others took
// it over: it would look like a rise that never was. Whose series they are can be told from their having ended. Whether
// they were of this fleet or of another one cannot, so everything before the newest such end is left out; the history
// is shorter then, and right. Once the fleet is followed it knows the pods that leave.
//
// An answer that the server warns of may lack series of such pods. Only its newest samples are taken.
func (u *subscription) beginning(own []*series, active []instances.Instance, partial string, t taking) int64 {
	newest, usual := latest(own), u.usualEnd(own)
	if partial != "" {
		return usual - 2*t.step
	}
	starts := make(map[string]int64, len(active))
	for i := range active {
		starts[active[i].ID] = active[i].Start.UnixMilli()
	}
	from := int64(0)
	for _, x := range own {
		spacing := cmp.Or(x.spacing, t.spacing)
		if newest-x.last() > 2*spacing && !u.knew(x, starts) {
			from = max(from, x.last()+spacing) // it was there until then at most
		}
	}
	return min(from, usual)
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

// knew tells whether a series that has ended is of an instance that the fleet knows, rather than of a pod that is
// gone, or of one whose name another pod now has.
func (u *subscription) knew(x *series, starts map[string]int64) bool {
	id, ok := u.roster.Find(x.pod, x.last())
	return ok && starts[id] <= x.last()
}

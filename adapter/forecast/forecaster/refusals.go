package forecaster

import (
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline/gate"
)

// maxRefusals bounds the readings that are counted, and the instances whose outliers are kept, of each PredictedMetric.
const maxRefusals = 256

// refusals are the readings that were not taken for a load, of the window of a feed.
type refusals struct {
	arrived []int64 // when readings arrived that cannot be a load (ms), in order

	// Of the last forecast, without the ones that the next reading may repeat.
	outliers int
	newest   map[string]gate.Outlier // of each instance, for maxRefusals of these
}

// add counts readings that cannot be a load.
func (r *refusals) add(n int, now time.Time) {
	for range min(n, maxRefusals) {
		r.arrived = append(r.arrived, now.UnixMilli())
	}
	if more := len(r.arrived) - maxRefusals; more > 0 {
		r.arrived = slices.Delete(r.arrived, 0, more)
	}
}

// setOutliers notes what a gate.Filter has removed.
func (r *refusals) setOutliers(all []gate.Outlier) {
	r.outliers = 0
	clear(r.newest)
	for i := range all {
		x := &all[i]
		if x.Newest {
			continue
		}
		r.outliers++
		known, ok := r.newest[x.Instance]
		switch {
		case ok && known.Sample.T > x.Sample.T, !ok && len(r.newest) >= maxRefusals:
		case r.newest == nil:
			r.newest = map[string]gate.Outlier{x.Instance: *x}
		default:
			r.newest[x.Instance] = *x
		}
	}
}

// count returns the readings since a time.
func (r *refusals) count(since time.Time) int {
	from, _ := slices.BinarySearch(r.arrived, since.UnixMilli())
	r.arrived = slices.Delete(r.arrived, 0, from)
	return len(r.arrived) + r.outliers
}

// reasons returns the newest outlier of each instance that is not older than since.
func (r *refusals) reasons(since time.Time) map[string]error {
	out := map[string]error{}
	for id, x := range r.newest {
		if x.Sample.T >= since.UnixMilli() {
			out[id] = &x // a copy, as snapshots keep it
		}
	}
	return out
}

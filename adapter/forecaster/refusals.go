package forecaster

import (
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline/gate"
)

// maxRefusals bounds the readings that are counted, as there is a counter for each PredictedMetric.
const maxRefusals = 256

// refusals are the readings that were not taken for a load, of the window of a feed.
type refusals struct {
	arrived  []int64        // when readings arrived that cannot be a load (ms), in order
	outliers []gate.Refusal // of the last forecast, without those that the next reading may repeat
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

// setOutliers keeps what a gate.Filter has removed.
func (r *refusals) setOutliers(all []gate.Refusal) {
	r.outliers = r.outliers[:0]
	for i := range all {
		if !all[i].Newest {
			r.outliers = append(r.outliers, all[i])
		}
	}
}

// count returns the readings since a time.
func (r *refusals) count(since time.Time) int {
	from, _ := slices.BinarySearch(r.arrived, since.UnixMilli())
	r.arrived = slices.Delete(r.arrived, 0, from)
	return len(r.arrived) + len(r.outliers)
}

// reasons returns the newest outlier of each instance that is not older than since.
func (r *refusals) reasons(since time.Time) map[string]error {
	out := map[string]error{}
	for _, x := range r.outliers {
		if x.Sample.T >= since.UnixMilli() {
			out[x.Instance] = &x // a copy, as snapshots keep it
		}
	}
	return out
}

package extenderbench

import (
	"math"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/test/env/foresail"
)

// buckets counts observations by the bound that they are not above, in the order of the bounds,
// each with those below it.
type buckets []*dto.Bucket

// histogram adds up the histograms of a name that have labels.
func histogram(families foresail.Families, name string, labels ...string) buckets {
	var sum buckets
	for _, m := range families.Find(name, labels...) {
		for i, bucket := range m.GetHistogram().GetBucket() {
			if i == len(sum) {
				bound, zero := bucket.GetUpperBound(), uint64(0)
				sum = append(sum, &dto.Bucket{UpperBound: &bound, CumulativeCount: &zero})
			}
			*sum[i].CumulativeCount += bucket.GetCumulativeCount()
		}
	}
	return sum
}

// since is what has been observed since another reading of the same histogram.
func (h buckets) since(before buckets) buckets {
	out := make(buckets, len(h))
	for i, bucket := range h {
		bound, count := bucket.GetUpperBound(), bucket.GetCumulativeCount()
		if i < len(before) {
			count -= before[i].GetCumulativeCount()
		}
		out[i] = &dto.Bucket{UpperBound: &bound, CumulativeCount: &count}
	}
	return out
}

// quantile is what a share of all observations does not exceed, as PromQL's histogram_quantile has
// it: they are taken to be spread evenly within their bucket. It is 0 without observations.
func (h buckets) quantile(share float64) float64 {
	if len(h) == 0 {
		return 0
	}
	rank := share * float64(h[len(h)-1].GetCumulativeCount())
	lower, below := 0.0, 0.0
	for _, bucket := range h {
		upper, count := bucket.GetUpperBound(), float64(bucket.GetCumulativeCount())
		if count >= rank && count > below {
			if math.IsInf(upper, 1) {
				return lower
			}
			return lower + (upper-lower)*(rank-below)/(count-below)
		}
		lower, below = upper, count
	}
	return 0
}

func TestQuantileOfBuckets(t *testing.T) {
	of := func(counts ...uint64) buckets {
		bounds := []float64{1, 2, 4, math.Inf(1)}
		out := make(buckets, len(counts))
		for i := range counts {
			out[i] = &dto.Bucket{UpperBound: &bounds[i], CumulativeCount: &counts[i]}
		}
		return out
	}
	for name, c := range map[string]struct {
		buckets buckets
		share   float64
		want    float64
	}{
		"none":                           {nil, 0.5, 0},
		"nothing observed":               {of(0, 0, 0, 0), 0.5, 0},
		"all in the first":               {of(10, 10, 10, 10), 0.5, 0.5},
		"on a bound":                     {of(5, 10, 10, 10), 0.5, 1},
		"within a later one":             {of(0, 0, 10, 10), 0.5, 3},
		"above the last bound":           {of(0, 0, 0, 10), 0.5, 4},
		"a reading since another":        {of(10, 10, 20, 20).since(of(10, 10, 10, 10)), 0.5, 3},
		"a reading since none was there": {of(10, 10, 10, 10).since(nil), 0.5, 0.5},
	} {
		t.Run(name, func(t *testing.T) { assert.InDelta(t, c.want, c.buckets.quantile(c.share), 1e-9) })
	}
}

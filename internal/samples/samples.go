// Package samples holds the series of samples that forecasts are made of: in order of time, with
// unique times.
package samples

import (
	"slices"

	"github.com/foresail/foresail/pipeline"
)

// Series is the samples of one instance, in order of time; no two have the same time. The zero
// value is empty.
type Series []pipeline.Sample

// Add inserts a sample. Of two with the same time the one added later stays.
func (s *Series) Add(x pipeline.Sample) {
	n := len(*s)
	if n == 0 || x.T > (*s)[n-1].T {
		s.grow()
		*s = append(*s, x)
		return
	}
	at := s.From(x.T)
	if (*s)[at].T == x.T {
		(*s)[at] = x
		return
	}
	s.grow()
	*s = slices.Insert(*s, at, x)
}

// grow makes room for one more sample. It adds a quarter, not as much as append: there may be a
// hundred thousand series.
func (s *Series) grow() {
	if n := len(*s); n == cap(*s) {
		*s = append(make(Series, 0, n+max(8, n/4)), *s...)
	}
}

// From returns the index of the first sample at or after t, len(s) if there is none. It is
// slices.BinarySearchFunc without the calls of a function, which make a forecast slow.
func (s Series) From(t int64) int {
	low, high := 0, len(s)
	for low < high {
		middle := int(uint(low+high) / 2)
		if s[middle].T < t {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// Before returns the samples before t.
func (s Series) Before(t int64) Series { return s[:s.From(t)] }

// CountSince returns how many samples are at or after t.
func (s Series) CountSince(t int64) int { return len(s) - s.From(t) }

// minTrim is the fewest samples that Trim drops: it moves the rest to the front.
const minTrim = 4

// Trim drops the samples before t except the newest of them, from which the first tick after t is
// interpolated. A few more may stay.
func (s *Series) Trim(t int64) {
	if len(*s) <= minTrim+1 || (*s)[minTrim+1].T >= t {
		return
	}
	drop := s.From(t) - 1
	*s = (*s)[:copy(*s, (*s)[drop:])]
}

// Median returns the middle value, or the mean of the middle two. It sorts the values, of which
// there is at least one.
func Median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return values[(n-1)/2]/2 + values[n/2]/2
}

package forecaster

import (
	"slices"

	"github.com/foresail/foresail/pipeline"
)

// series holds the samples of one instance, sorted, their times unique.
type series struct{ samples []pipeline.Sample }

// add inserts a sample; of two with one timestamp the later added stays.
func (s *series) add(x pipeline.Sample) {
	n := len(s.samples)
	if n == 0 || x.T > s.samples[n-1].T {
		s.grow()
		s.samples = append(s.samples, x)
		return
	}
	at := firstFrom(s.samples, x.T)
	if s.samples[at].T == x.T {
		s.samples[at] = x
		return
	}
	s.grow()
	s.samples = slices.Insert(s.samples, at, x)
}

// grow makes room for one more, by a quarter where there is none: there may be a hundred thousand series, and of each
// what append would add lies idle.
func (s *series) grow() {
	if n := len(s.samples); n == cap(s.samples) {
		s.samples = append(make([]pipeline.Sample, 0, n+max(8, n/4)), s.samples...)
	}
}

// firstFrom returns the place of the first of sorted samples at or after t. Each forecast asks for many, which a search
// that calls a function for each comparison makes slow.
func firstFrom(samples []pipeline.Sample, t int64) int {
	low, high := 0, len(samples)
	for low < high {
		middle := int(uint(low+high) / 2)
		if samples[middle].T < t {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// trimmed is how many samples are dropped at once at the least: each time the rest is moved to the front.
const trimmed = 4

// trim drops what lies before t, but for the newest such sample, from which the first tick after t is interpolated.
func (s *series) trim(t int64) {
	if len(s.samples) <= trimmed+1 || s.samples[trimmed+1].T >= t {
		return
	}
	drop := firstFrom(s.samples, t) - 1
	s.samples = s.samples[:copy(s.samples, s.samples[drop:])]
}

// countSince returns how many samples are at or after t.
func (s *series) countSince(t int64) int { return len(s.samples) - firstFrom(s.samples, t) }

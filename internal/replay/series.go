package replay

import (
	"cmp"
	"slices"

	"github.com/foresail/foresail/pipeline"
)

// series holds the samples of one instance, or of demand, that a run can see and that can still matter to it.
type series struct {
	samples  []pipeline.Sample // in order of time, their times unique, unless unsorted
	unsorted bool              // then in the order they became visible
}

// add takes the sample that became visible next; of two with one timestamp it is the one that counts.
func (s *series) add(x pipeline.Sample) {
	if n := len(s.samples); n > 0 && x.T <= s.samples[n-1].T {
		s.unsorted = true
	}
	s.samples = append(s.samples, x)
}

// settle brings late samples into place and forgets those at or before since but for the newest of them, from which
// the first tick after since is interpolated. A sample that comes later may be older, but then it changes nothing.
func (s *series) settle(since int64) {
	if s.unsorted {
		slices.SortStableFunc(s.samples, func(a, b pipeline.Sample) int { return cmp.Compare(a.T, b.T) })
		s.samples = lastOfEach(s.samples, func(x pipeline.Sample) int64 { return x.T })
		s.unsorted = false
	}
	later, _ := slices.BinarySearchFunc(s.samples, since+1, func(x pipeline.Sample, t int64) int { return cmp.Compare(x.T, t) })
	s.samples = s.samples[max(0, later-1):]
}

package replay

import (
	"cmp"
	"slices"

	"github.com/foresail/foresail/pipeline"
)

// series holds the samples of one instance, or of demand, that have been received and can still matter to a run.
type series struct {
	samples  []pipeline.Sample // in order of time, their times unique, unless unsorted
	unsorted bool              // then in order of reception
}

// add takes the sample that was received next; of two with one timestamp it is the one that counts.
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
	s.samples = s.samples[max(0, s.firstAfter(since)-1):]
}

// upTo returns the samples at or before t of a series that is settled.
func (s *series) upTo(t int64) []pipeline.Sample { return s.samples[:s.firstAfter(t)] }

// firstAfter returns the place of the first sample later than t.
func (s *series) firstAfter(t int64) int {
	at, _ := slices.BinarySearchFunc(s.samples, t+1, func(x pipeline.Sample, t int64) int { return cmp.Compare(x.T, t) })
	return at
}

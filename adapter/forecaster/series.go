package forecaster

import (
	"cmp"
	"slices"

	"github.com/foresail/foresail/pipeline"
)

// series holds the samples of one instance, sorted, their times unique.
type series struct{ samples []pipeline.Sample }

// add inserts samples; of two with one timestamp the later added stays.
func (s *series) add(samples ...pipeline.Sample) {
	for _, x := range samples {
		n := len(s.samples)
		if n == 0 || x.T > s.samples[n-1].T {
			s.samples = append(s.samples, x)
			continue
		}
		if at, found := s.search(x.T); found {
			s.samples[at] = x
		} else {
			s.samples = slices.Insert(s.samples, at, x)
		}
	}
}

// search returns the place of the first sample at or after t, and whether it is at t.
func (s *series) search(t int64) (at int, found bool) {
	return slices.BinarySearchFunc(s.samples, t, compareTime)
}

func compareTime(x pipeline.Sample, t int64) int { return cmp.Compare(x.T, t) }

// trim drops what lies before t, but for the newest such sample, from which the first tick after t is interpolated.
// It moves the rest to the front once half is dropped, so that the memory stays that of the window.
func (s *series) trim(t int64) {
	at, _ := s.search(t)
	if drop := at - 1; drop > len(s.samples)/4 {
		s.samples = s.samples[:copy(s.samples, s.samples[drop:])]
	}
}

// countSince returns how many samples are at or after t.
func (s *series) countSince(t int64) int {
	at, _ := s.search(t)
	return len(s.samples) - at
}

package samples

import (
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline"
)

// Packed is a Series in three quarters of its memory: there may be one for each of a hundred
// thousand pods. Its samples are read by unpacking all of them. The zero value is empty.
type Packed struct {
	oldest, newest int64   // ms
	highest        float64 // of all values since the series was empty
	samples        []packed
}

// packed is a sample: the milliseconds since the one before, and the halves of its value.
type packed struct{ since, high, low uint32 }

func pack(since int64, v float64) packed {
	bits := math.Float64bits(v)
	return packed{uint32(since), uint32(bits >> 32), uint32(bits & math.MaxUint32)} // #nosec G115 -- Add bounds the time
}

func (p packed) value() float64 { return math.Float64frombits(uint64(p.high)<<32 | uint64(p.low)) }

// furthestApart is how far apart two samples may be (ms): 49 days.
const furthestApart = math.MaxUint32

// Len is the number of samples.
func (s *Packed) Len() int { return len(s.samples) }

// Add inserts a sample. Of two with the same time the one added later stays. One that is 49 days or
// more after the others replaces them, one that is as long before them is ignored.
func (s *Packed) Add(x pipeline.Sample) {
	s.highest = max(s.highest, x.V)
	switch {
	case len(s.samples) == 0 || x.T-s.newest > furthestApart:
		s.oldest, s.newest, s.highest = x.T, x.T, x.V
		s.samples = append(s.samples[:0], pack(0, x.V))
	case x.T > s.newest:
		s.insert(len(s.samples), pack(x.T-s.newest, x.V))
		s.newest = x.T
	case x.T >= s.oldest:
		s.addBetween(x)
	case s.oldest-x.T <= furthestApart:
		s.samples[0].since = uint32(s.oldest - x.T) // #nosec G115 -- checked above
		s.insert(0, pack(0, x.V))
		s.oldest = x.T
	}
}

// addBetween adds a sample that is not older than the oldest one, and not newer than the newest.
func (s *Packed) addBetween(x pipeline.Sample) {
	at, t := len(s.samples)-1, s.newest
	for t > x.T {
		t -= int64(s.samples[at].since)
		at--
	}
	since := x.T - t
	if since == 0 {
		s.samples[at] = pack(int64(s.samples[at].since), x.V)
		return
	}
	s.samples[at+1].since -= uint32(since) // #nosec G115 -- it is less than that
	s.insert(at+1, pack(since, x.V))
}

// insert makes room by an eighth more, not as much as append.
func (s *Packed) insert(at int, p packed) {
	if n := len(s.samples); n == cap(s.samples) {
		s.samples = append(make([]packed, 0, n+max(8, n/8)), s.samples...)
	}
	s.samples = slices.Insert(s.samples, at, p)
}

// Highest returns a value that no sample exceeds, without reading them. It does not fall when
// samples are dropped.
func (s *Packed) Highest() float64 { return s.highest }

// AppendTo appends the samples to others.
func (s *Packed) AppendTo(out []pipeline.Sample) []pipeline.Sample {
	t := s.oldest
	for _, p := range s.samples {
		t += int64(p.since)
		out = append(out, pipeline.Sample{T: t, V: p.value()})
	}
	return out
}

// CountSince returns how many samples are at or after t.
func (s *Packed) CountSince(t int64) int {
	n := len(s.samples)
	at := s.newest
	k := n
	for k > 0 && at >= t {
		k--
		at -= int64(s.samples[k].since)
	}
	return n - k
}

// Trim drops the samples before t except the newest of them, from which the first tick after t is
// interpolated. A few more may stay.
func (s *Packed) Trim(t int64) {
	drop, oldest := 0, s.oldest
	for drop+1 < len(s.samples) {
		next := oldest + int64(s.samples[drop+1].since)
		if next >= t {
			break
		}
		drop, oldest = drop+1, next
	}
	if drop <= minTrim {
		return
	}
	s.samples = s.samples[:copy(s.samples, s.samples[drop:])]
	s.samples[0].since = 0
	s.oldest = oldest
}

// DropOldest drops the n oldest samples, but keeps one.
func (s *Packed) DropOldest(n int) {
	n = min(n, len(s.samples)-1)
	if n <= 0 {
		return
	}
	for _, p := range s.samples[1 : n+1] {
		s.oldest += int64(p.since)
	}
	s.samples = s.samples[:copy(s.samples, s.samples[n:])]
	s.samples[0].since = 0
}

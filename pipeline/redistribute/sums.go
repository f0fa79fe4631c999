package redistribute

import (
	"cmp"
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

// sums is the memory in which the instances of a window are added up.
type sums struct {
	window  *series.Window
	members []member
	byStart []*member     // sorted by start
	loads   []series.Load // by tick of the grid, plus one
	raw     []float64     // by tick: the sum of instances in full
	scratch []float64     // by tick: the loads of one instance
}

// member is one instance of the window.
type member struct {
	*series.Row
	newcomer bool         // it may have taken over load from another instance when it started
	growing  series.Ticks // the ticks at which it does not count in full yet
}

// begin prepares the memory for a window.
func (s *sums) begin(w *series.Window) {
	s.window = w
	s.members = series.Resize(s.members, len(w.Rows))
	for i := range w.Rows {
		s.members[i] = member{Row: &w.Rows[i]}
	}
	s.loads, s.raw = series.ResizeZeroed(s.loads, w.N+1), series.ResizeZeroed(s.raw, w.N)
	s.scratch = series.Resize(s.scratch, w.N)
	s.markNewcomers()
}

// result returns the loads of the ticks [First, Last].
func (s *sums) result() []series.Load { return s.loads[s.window.First : s.window.Last+1] }

// addRaw adds the loads g of an instance to the raw sums.
func (s *sums) addRaw(at series.Ticks, g []float64) {
	raw := s.raw[at.From:at.To]
	for k, v := range g[at.From:at.To] {
		raw[k] += v
	}
}

// markNewcomers marks the instances that may have taken over load from another one when they started: one that
// had started before and was still active. The others count in full from the start.
func (s *sums) markNewcomers() {
	first, last, end := int64(math.MaxInt64), int64(math.MinInt64), int64(0)
	for i := range s.members {
		m := &s.members[i]
		if m.Start < first {
			first, end = m.Start, m.Until()
		}
		last = max(last, m.Start)
	}
	if end <= last {
		s.markNewcomersInOrder()
		return
	}
	for i := range s.members { // the usual case: one of the first instances is still active
		s.members[i].newcomer = s.members[i].Start > first
	}
}

// markNewcomersInOrder is markNewcomers without the assumption that one of the first instances is still active.
func (s *sums) markNewcomersInOrder() {
	s.byStart = s.byStart[:0]
	for i := range s.members {
		s.byStart = append(s.byStart, &s.members[i])
	}
	slices.SortFunc(s.byStart, func(a, b *member) int { return cmp.Compare(a.Start, b.Start) })
	latestEnd := int64(math.MinInt64) // of the instances that started before the current group
	for group := s.byStart; len(group) > 0; {
		start, groupEnd := group[0].Start, latestEnd
		for len(group) > 0 && group[0].Start == start {
			group[0].newcomer = latestEnd > start
			groupEnd = max(groupEnd, group[0].Until())
			group = group[1:]
		}
		latestEnd = groupEnd
	}
}

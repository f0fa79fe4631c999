package pipeline

import (
	"cmp"
	"math"
	"slices"
)

// grid is the uniform time grid of one window: n ticks, step ms apart, the first at first. All are multiples of step.
type grid struct {
	first, step int64
	n           int
}

// newGrid returns the ticks t with now − window < t ≤ now.
func newGrid(now, window, step int64) grid {
	first := (floorDiv(now-window, step) + 1) * step
	last := floorDiv(now, step) * step
	return grid{first: first, step: step, n: int((last-first)/step) + 1}
}

// from returns the grid without the ticks before t.
func (g grid) from(t int64) grid {
	skip := g.index(t)
	return grid{first: g.tick(skip), step: g.step, n: g.n - skip}
}

func (g grid) tick(k int) int64 { return g.first + int64(k)*g.step }

// index returns the number of the first tick at or after t, held to [0, n].
func (g grid) index(t int64) int {
	if t <= g.first {
		return 0
	}
	if t > g.tick(g.n-1) {
		return g.n
	}
	return int((t - g.first + g.step - 1) / g.step)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// align writes to out[k], for each tick k of [from, to) that lies between two consecutive samples, the value
// interpolated between them, once, and leaves the other elements alone (paper, section 4.2). Samples are sorted by time and
// their times are unique. It returns the number of the newest tick written, or -1.
func align(samples []Sample, g grid, from, to int, out func(k int, v float64)) int {
	newest := -1
	for i := 1; i < len(samples); i++ {
		a, b := samples[i-1], samples[i]
		if b.T < g.first {
			continue
		}
		for k := max(from, g.index(a.T), newest+1); k < to; k++ {
			t := g.tick(k)
			if t > b.T {
				break
			}
			out(k, interpolate(a, b, t))
			newest = k
		}
	}
	return newest
}

func interpolate(a, b Sample, t int64) float64 {
	switch t {
	case a.T:
		return a.V
	case b.T:
		return b.V
	}
	return a.V + (b.V-a.V)*((float64(t)-float64(a.T))/(float64(b.T)-float64(a.T)))
}

// clean returns the samples that may be aligned, sorted, one for each timestamp (the last given wins), and how many
// it refused: values g is not defined for and samples later than latest. Where nothing is to be done it returns the
// given slice; otherwise it works in buf, which it returns for the next call.
func clean(samples []Sample, m Model, latest int64, buf []Sample) (cleaned, scratch []Sample, dropped int) {
	if isClean(samples, m, latest) {
		return samples, buf, 0
	}
	buf = buf[:0]
	for _, s := range samples {
		if s.T > latest || !m.InRange(s.V) {
			dropped++
			continue
		}
		buf = append(buf, s)
	}
	slices.SortStableFunc(buf, func(a, b Sample) int { return cmp.Compare(a.T, b.T) })
	kept := 0
	for i := range buf {
		if kept > 0 && buf[kept-1].T == buf[i].T {
			kept--
		}
		buf[kept] = buf[i]
		kept++
	}
	return buf[:kept], buf, dropped
}

func isClean(samples []Sample, m Model, latest int64) bool {
	previous := int64(math.MinInt64)
	for i, s := range samples {
		if (i > 0 && s.T <= previous) || s.T > latest || !m.InRange(s.V) {
			return false
		}
		previous = s.T
	}
	return true
}

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

// between returns the ticks that lie between two consecutive samples, which are sorted by time and unique: as whatever
// is between two neighbours is interpolated, those are all from the first sample to the last.
func (g grid) between(samples []Sample) ticks {
	if len(samples) < 2 {
		return ticks{}
	}
	return ticks{g.index(samples[0].T), g.index(samples[len(samples)-1].T + 1)}
}

// align writes to out[k] the value at each tick k of at, interpolated between the samples around it (paper, section 4.2).
// The ticks must be between samples.
func align(samples []Sample, g grid, at ticks, out []float64) {
	next := 0 // the first sample at or after the tick
	for k := at.from; k < at.to; k++ {
		t := g.tick(k)
		for samples[next].T < t {
			next++
		}
		if samples[next].T == t {
			out[k] = samples[next].V
		} else {
			out[k] = interpolate(samples[next-1], samples[next], t)
		}
	}
}

func interpolate(a, b Sample, t int64) float64 {
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

// isClean tells whether the samples are as clean would leave them. It is called for every sample there is.
func isClean(samples []Sample, m Model, latest int64) bool {
	if len(samples) == 0 {
		return true
	}
	lowest, previous := m.lowest(), samples[0].T
	for i, s := range samples {
		if i > 0 && s.T <= previous {
			return false
		}
		if !(lowest <= s.V && s.V <= math.MaxFloat64) { // nor is a NaN
			return false
		}
		previous = s.T
	}
	return previous <= latest
}

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

// floorMod is what floorDiv leaves.
func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

// align writes to out[k] the value at each tick k of active that lies between two consecutive samples (paper, section
// 4.2), and returns those ticks. They are all from the first sample to the last, as whatever is between two neighbours is
// interpolated. It also reports whether the samples are clean; if not, out is undefined, as it is at all other ticks.
func align(samples []Sample, ok limits, g grid, active ticks, out []float64) (known ticks, isClean bool) {
	if len(samples) == 0 {
		return ticks{}, true
	}
	first := samples[0]
	at := ticks{g.index(first.T), active.to}
	from, t := at.from, g.tick(at.from)

	// In three parts: the samples before the window, as many from there on as are a step apart, and the rest.
	i := 0
	for i+1 < len(samples) && samples[i+1].T < t {
		i++
	}
	if _, isClean = interpolate(samples[:i+1], ok, g, ticks{}, out); !isClean {
		return ticks{}, false
	}
	if a := samples[i]; t-g.step < a.T && a.T < t && from < at.to {
		n := interpolateEven(samples[i:], ok, g.step, float64(t-a.T)/float64(g.step), out[from:at.to])
		at.from, i = from+n, i+n
	}
	to, isClean := interpolate(samples[i:], ok, g, at, out)
	if from < to && t == first.T {
		out[from] = first.V // to the bit, also where the difference to the second overflows
	}
	return ticks{max(active.from, from), to}, isClean
}

// interpolateEven is interpolate for samples that are clean and a step apart, as most are, for as long as they are. There is one tick
// between each two, at the same part of the way from one to the other. It returns how many ticks it has written.
func interpolateEven(samples []Sample, ok limits, step int64, part float64, out []float64) int {
	a := samples[0]
	n := min(len(samples)-1, len(out))
	out = out[:n]
	for i, b := range samples[1 : n+1] {
		if b.T-a.T != step || !ok.value(a.V) {
			return i
		}
		out[i] = a.V + (b.V-a.V)*part
		a = b
	}
	return n
}

// interpolate writes the values at ticks from the first of at on, and returns the number of the first that it has not
// written. It reads every sample once, in and out of the window, and stops where they turn out not to be clean.
func interpolate(samples []Sample, ok limits, g grid, at ticks, out []float64) (end int, isClean bool) {
	a, atA := samples[0], float64(samples[0].T)
	k, t := at.from, g.tick(at.from)
	out = out[:max(at.from, at.to)]
	for _, b := range samples[1:] {
		if b.T <= a.T || !ok.value(a.V) {
			return k, false
		}
		atB := float64(b.T)
		for t <= b.T && uint(k) < uint(len(out)) { // one comparison for the end and the bounds
			v := b.V
			if t != b.T {
				v = a.V + (b.V-a.V)*((float64(t)-atA)/(atB-atA))
			}
			out[k] = v
			k++
			t += g.step
		}
		a, atA = b, atB
	}
	return k, ok.sample(a)
}

// limits are what a sample may be.
type limits struct {
	latest int64
	lowest float64
}

func (l limits) value(v float64) bool { return l.lowest <= v && v <= math.MaxFloat64 } // not for a NaN

func (l limits) sample(s Sample) bool { return s.T <= l.latest && l.value(s.V) }

// clean returns, in the memory of buf, the samples that may be aligned, sorted, one for each timestamp (the last given
// wins), and how many it dropped: values that g is not defined for and samples from the future.
func clean(samples []Sample, ok limits, buf []Sample) (cleaned []Sample, dropped int) {
	buf = buf[:0]
	for _, s := range samples {
		if ok.sample(s) {
			buf = append(buf, s)
		}
	}
	dropped = len(samples) - len(buf)
	slices.SortStableFunc(buf, func(a, b Sample) int { return cmp.Compare(a.T, b.T) })
	kept := 0
	for i := range buf {
		if kept > 0 && buf[kept-1].T == buf[i].T {
			kept--
		}
		buf[kept] = buf[i]
		kept++
	}
	return buf[:kept], dropped
}

// Package align is stage one of the pipeline (paper, section 4): it interpolates the samples of each instance at the
// ticks of the grid. Samples may be in any order and have gaps. Times are in ms, values in units of the metric.
package align

import (
	"cmp"
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

// Aligner aligns samples to a grid. It reuses memory between calls but keeps no other state; the zero value is
// ready to use.
type Aligner struct {
	samples []series.Sample // the samples that cleaning has left
}

// Fill aligns the samples of every row of a window, and sets the ticks at which rows and window are known. It
// returns the number of dropped samples. If no tick is known, w.Last is negative.
func (a *Aligner) Fill(w *series.Window, ok Limits) (dropped int) {
	w.First, w.Last = w.N, -1
	for i := range w.Rows {
		row := &w.Rows[i]
		known, used, n := a.Align(row.Samples, ok, w.Grid, row.Active, row.Values)
		row.Known, row.Spacing = known, spacing(used, w.Step)
		dropped += n
		if !known.Empty() {
			w.First, w.Last = min(w.First, known.From), max(w.Last, known.To-1)
		}
	}
	return dropped
}

// Align writes to out the values at those ticks of active that lie between two samples, and returns these
// ticks. It also returns the samples it used, which may be cleaned ones and are valid until the next call, and
// how many it dropped.
func (a *Aligner) Align(
	samples []series.Sample, ok Limits, g series.Grid, active series.Ticks, out []float64,
) (known series.Ticks, used []series.Sample, dropped int) {
	known, isClean := align(samples, ok, g, active, out)
	if isClean {
		return known, samples, 0
	}
	a.samples, dropped = clean(samples, ok, a.samples)
	known, _ = align(a.samples, ok, g, active, out)
	return known, a.samples, dropped
}

// spacing returns the average number of ticks between samples that are in order of time; 0 if they are too few.
func spacing(samples []series.Sample, step int64) int64 {
	n := int64(len(samples))
	if n <= 2 {
		return 0
	}
	return ((samples[n-1].T-samples[0].T)/(n-1) + step/2) / step
}

// align writes to out[k] the value at each tick k of active that lies between two consecutive samples (paper,
// section 4.2), and returns these ticks. They reach from the first sample to the last, because gaps are
// interpolated. It also reports whether the samples are clean: if not, out is undefined. out is always
// undefined at all other ticks.
func align(
	samples []series.Sample, ok Limits, g series.Grid, active series.Ticks, out []float64,
) (known series.Ticks, isClean bool) {
	if len(samples) == 0 {
		return series.Ticks{}, true
	}
	first := samples[0]
	at := series.Ticks{From: g.Index(first.T), To: active.To}
	from, t := at.From, g.Tick(at.From)

	// There are three parts: the samples before the window, those from there on that are one step apart, and the rest.
	i := 0
	for i+1 < len(samples) && samples[i+1].T < t {
		i++
	}
	if _, isClean = interpolate(samples[:i+1], ok, g, series.Ticks{}, out); !isClean {
		return series.Ticks{}, false
	}
	if a := samples[i]; t-g.Step < a.T && a.T < t && from < at.To {
		n := interpolateEven(samples[i:], ok, g.Step, float64(t-a.T)/float64(g.Step), out[from:at.To])
		at.From, i = from+n, i+n
	}
	to, isClean := interpolate(samples[i:], ok, g, at, out)
	if from < to && t == first.T {
		out[from] = first.V // exactly, even if the difference to the second sample overflows
	}
	return series.Ticks{From: max(active.From, from), To: to}, isClean
}

// interpolateEven is a fast path of interpolate for clean samples that are one step apart, as most are. There
// is one tick between each two samples, always at the same fraction of the way. It stops at the first sample
// that is not clean or not evenly spaced, and returns the number of ticks that it wrote.
func interpolateEven(samples []series.Sample, ok Limits, step int64, part float64, out []float64) int {
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

// interpolate writes the values at the ticks from at.From on, and returns the index of the first tick that it
// has not written. It reads every sample once, inside and outside the window, and stops at the first one that
// is not clean.
func interpolate(samples []series.Sample, ok Limits, g series.Grid, at series.Ticks,
	out []float64) (end int, isClean bool) {
	a, atA := samples[0], float64(samples[0].T)
	k, t := at.From, g.Tick(at.From)
	out = out[:max(at.From, at.To)]
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
			t += g.Step
		}
		a, atA = b, atB
	}
	return k, ok.sample(a)
}

// Limits are the bounds within which a sample is used.
type Limits struct {
	Latest int64   // ms
	Lowest float64 // of its value
}

// value reports whether a value is within the limits; a NaN is not.
func (l Limits) value(v float64) bool { return l.Lowest <= v && v <= math.MaxFloat64 } // false for NaN

// sample reports whether time and value are within the limits.
func (l Limits) sample(s series.Sample) bool { return s.T <= l.Latest && l.value(s.V) }

// clean returns, in the memory of buf, the samples that are within the limits, sorted by time, one for each
// timestamp (the later one in the list wins). It also returns how many samples were outside the limits.
func clean(samples []series.Sample, ok Limits, buf []series.Sample) (cleaned []series.Sample, dropped int) {
	buf = buf[:0]
	for _, s := range samples {
		if ok.sample(s) {
			buf = append(buf, s)
		}
	}
	dropped = len(samples) - len(buf)
	slices.SortStableFunc(buf, func(a, b series.Sample) int { return cmp.Compare(a.T, b.T) })
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

package predict

import (
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline/line"
	"github.com/foresail/foresail/pipeline/series"
)

// LineFit forecasts with a straight line through the newest loads, in place of Holt's method (paper, section
// 7). It trusts a trend as far as the loads support it:
//
//   - The line goes through as many ticks as agree on one. So it is calm while the load is, and quick at jumps.
//   - Its slope counts only as far as noise does not explain it.
//   - It is extended for little longer than it has lasted.
//   - A load that rises again is assumed to stop at its recent peak, until it passes it.
//   - While instances read the maximum of the metric, and not because of one long request, the load is at least
//     that. It is assumed to have continued to rise as it rose before, if it had risen for more than a moment.
//
// The constants were chosen on the profiles and traces of internal/lab (docs/lab.md).
type LineFit struct {
	// Counted means that the load is counted, like requests, and not measured: the newest load is the level,
	// and a rise is extended only if most of the newest ticks rose.
	Counted bool
}

const (
	// hiddenGrowth is the minimum share by which the load of a clipped fleet is assumed to exceed the visible load.
	hiddenGrowth = 0.15
	// jumpTicks is the number of ticks of a line below which it may be a steep rise or a jump; jumpGrowth is the maximum
	// share by which the load of a fleet that was clipped by one is assumed to exceed the visible load.
	jumpTicks  = 5
	jumpGrowth = 0.5
	// clipSigmas is the number of standard deviations above the preceding line up to which clipped ticks count
	// as noise.
	clipSigmas = 5
	// minNoiseTicks is the minimum number of ticks from which noise is estimated.
	minNoiseTicks = 10
	// briefTicks is the number of clipped ticks below which they are ignored if the noise is unknown.
	briefTicks = 5
)

// Project returns the projection of loads whose readings are spacing ticks apart, to be extended by a number of
// ticks. scratch needs one number for each load.
func (a LineFit) Project(loads []series.Load, spacing int, ahead float64, scratch []float64) Projection {
	p := project(loads, line.NewSampling(spacing, ahead), scratch)
	if a.Counted {
		useNewestLoad(&p, loads)
	}
	return p
}

// Extend returns the projection of the same loads for more ticks ahead than near, for which p was made. It fits
// a longer line only if the line of p used all ticks that it was allowed: then the trend may have lasted for
// longer, and may be extended for longer.
func (a LineFit) Extend(
	p Projection, loads []series.Load, spacing int, near, ahead float64, scratch []float64,
) Projection {
	allowed := line.NewSampling(spacing, near)
	longer := line.NewSampling(spacing, ahead)
	// Lasts is CarriedOn times the ticks of the line.
	wentThroughAll := p.Lasts >= line.CarriedOn*float64(allowed.Longest)
	if !wentThroughAll || longer.Longest <= allowed.Longest || len(loads) <= allowed.Longest {
		return p
	}
	return project(loads, longer, scratch)
}

// project returns the projection of loads with lines of a sampling.
func project(loads []series.Load, s line.Sampling, scratch []float64) Projection {
	sigma := line.Noise(s.Newest(loads), s.Spacing, scratch)
	begin, end, l := readableLine(loads, s, sigma, scratch)
	p := Projection{Lasts: line.CarriedOn * float64(l.Ticks), LevelError: l.LevelError, Max: RecentPeak(loads, sigma)}
	p.Level, p.Slope = max(0, l.Level), l.Slope*l.Trust()
	if end == len(loads) {
		p.Noise = line.Deviation(loads[begin:end])
		return p
	}
	p.Shown = loads[len(loads)-1].Effective
	if begin == end { // clipped for the whole window
		p.Level = p.Shown
	}
	p.Slope = max(0, p.Slope)
	p.Hidden = float64(len(loads) - end)
	p.Level = max(p.Level, p.Shown-p.Growth(0))
	p.Min = p.Shown * (1 + hiddenGrowth)
	if p.Shown < p.Max {
		p.Max = max(p.Max, p.Min)
	} else {
		p.Max = math.Inf(1) // it has reached the peak again, and may have passed it unseen
	}
	if l.Ticks < jumpTicks {
		p.Max = min(p.Max, p.Shown*(1+jumpGrowth))
	}
	return p
}

const (
	// recentRises is the number of newest ticks of which lastingRises must have risen for a rise to continue: a single
	// arrival between two samples may show at three ticks.
	recentRises  = 5
	lastingRises = 4
)

// useNewestLoad makes p the projection of a counted load: its level is the newest load, and it rises no faster
// than most of the newest ticks did.
func useNewestLoad(p *Projection, loads []series.Load) {
	newest := loads[max(0, len(loads)-1-recentRises):]
	p.Level, p.LevelError, p.Noise = newest[len(newest)-1].Effective, 0, 0
	var rises [recentRises]float64
	for k := range len(newest) - 1 {
		rises[k] = newest[k+1].Effective - newest[k].Effective
	}
	slices.Sort(rises[:])
	p.Slope = min(p.Slope, max(0, rises[recentRises-lastingRises]))
}

// readableLine returns the newest ticks at which the load is readable, and the line through them: the ticks
// before the load became clipped, if it still is, or those since it was clipped last. sigma is the noise of the
// newest loads.
func readableLine(loads []series.Load, s line.Sampling, sigma float64,
	scratch []float64) (begin, end int, l line.Line) {
	for k := 0; ; {
		from, to := clippedRun(loads, k)
		before := loads[begin:from]
		if from == len(loads) && len(s.Newest(before)) == len(s.Newest(loads)) {
			// All ticks that the line may go through are readable.
			l = line.FitWithin(s.Newest(before), line.NoisePerTick(sigma, s.Spacing))
		} else {
			l = line.Fit(before, s, scratch)
		}
		explained := from < len(loads) && isNoise(l, before, loads[from:to])
		if to == len(loads) && !explained {
			return begin, from, l
		}
		if !explained {
			begin = to
		}
		k = to
	}
}

// clippedRun returns the first run of clipped ticks from k on; the run ends before two ticks in a row that are
// not clipped. Without one it returns the end of the loads twice.
func clippedRun(loads []series.Load, k int) (from, to int) {
	for k < len(loads) && !loads[k].Clipped {
		k++
	}
	for from, to = k, k; k < len(loads) && k <= to+1; k++ {
		if loads[k].Clipped {
			to = k + 1
		}
	}
	return from, to
}

// isNoise reports whether clipped ticks may be noise of the loads before them, through which the line goes.
func isNoise(l line.Line, before, clipped []series.Load) bool {
	if len(before) < minNoiseTicks {
		return len(clipped) < briefTicks
	}
	shown := 0.0
	for k := range clipped {
		shown = max(shown, clipped[k].Effective)
	}
	n := float64(len(clipped))
	above := shown - (l.Level + l.Slope*l.Trust()*n/2)
	return above > 0 && above*math.Sqrt(n) < clipSigmas*line.Deviation(before)
}

const (
	// peakDrop is the share by which a load must drop for a peak to count.
	peakDrop = 0.3
	// peakTicks is the number of ticks that are averaged, so that a single tick is no peak.
	peakTicks = 5
)

// RecentPeak returns the highest load from which the loads of the window have dropped, by a large share and by
// more than noise. It is infinite without such a drop. Clipped loads count as more than they show. The standard
// deviation of a load x is assumed to be sigma·√x.
func RecentPeak(loads []series.Load, sigma float64) float64 {
	highest := 0.0
	top, bottom, falling := 0.0, 0.0, false
	for ; len(loads) >= peakTicks; loads = loads[peakTicks:] {
		mean := 0.0
		for k := range loads[:peakTicks] {
			x := loads[k].Effective
			if loads[k].Clipped {
				x *= 1 + hiddenGrowth
			}
			mean += x / peakTicks
		}
		swing := max(peakDrop*top, 4*sigma*math.Sqrt(max(top, mean)/peakTicks))
		switch {
		case !falling && mean >= top:
			top = mean
		case !falling && mean < top-swing:
			falling, bottom = true, mean
			highest = max(highest, top)
		case falling && mean <= bottom:
			bottom = mean
		case falling && mean > bottom+swing:
			falling, top = false, mean
		}
	}
	if highest == 0 {
		return math.Inf(1)
	}
	return highest
}

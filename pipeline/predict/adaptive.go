package predict

import (
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline/line"
	"github.com/foresail/foresail/pipeline/series"
)

// Adaptive forecasts from straight lines through the newest loads, in place of Holt's method (paper, section 7). It
// trusts a trend as far as the loads support it:
//
//   - the line goes through as many ticks as agree on one, so that it is calm where the load is and quick at jumps;
//   - its slope counts as far as noise does not explain it;
//   - it is carried on for little longer than it has lasted;
//   - a load that rises again is not assumed to pass its recent peak, until it does;
//   - at ticks at which instances read the maximum of the metric, and not because of one request that takes long, the
//     load is at least that. It is assumed to have gone on rising through them as it rose before, if that was for more
//     than a moment.
//
// Its constants were chosen on the profiles and traces of internal/lab (docs/lab.md).
type Adaptive struct {
	// Counted says that the load is counted, as requests are, and not measured: the newest load is taken as it is, and
	// a rise is carried on that most of the newest ticks share.
	Counted bool
}

const (
	// hiddenGrowth is the least share of load that a clipped fleet is assumed to have above what it shows.
	hiddenGrowth = 0.15
	// Fewer than jumpTicks may be a steep rise or a jump; jumpGrowth is the largest share of load that a fleet which
	// was clipped by one is assumed to have above what it shows.
	jumpTicks  = 5
	jumpGrowth = 0.5
	// chance is the number of standard deviations above the line before them up to which clipped ticks count as noise.
	chance = 5
	// fewTicks is the least number of ticks from which the noise of a load is known.
	fewTicks = 10
	// Fewer than briefly clipped ticks are ignored if the noise is unknown.
	briefly = 5
)

// Project returns the projection of loads whose readings are spacing ticks apart, to be carried on for a number of
// ticks. Scratch has room for a number for each load.
func (a Adaptive) Project(loads []series.Load, spacing int, ahead float64, scratch []float64) Projection {
	o := project(loads, line.NewSampling(spacing, ahead), scratch)
	if a.Counted {
		count(&o, loads)
	}
	return o
}

// Extend returns the projection of the same loads for more ticks ahead than the near ones that o was made for. It fits
// a longer line if the one of o went through all the ticks that it was allowed: the trend may have lasted for longer,
// and then it is carried on for longer.
func (a Adaptive) Extend(
	o Projection, loads []series.Load, spacing int, near, ahead float64, scratch []float64,
) Projection {
	allowed := line.NewSampling(spacing, near)
	longer := line.NewSampling(spacing, ahead)
	// Lasts is CarriedOn times the ticks of the line.
	wentThroughAll := o.Lasts >= line.CarriedOn*float64(allowed.Longest)
	if !wentThroughAll || longer.Longest <= allowed.Longest || len(loads) <= allowed.Longest {
		return o
	}
	return project(loads, longer, scratch)
}

// project returns the projection of loads by lines of a sampling.
func project(loads []series.Load, s line.Sampling, scratch []float64) Projection {
	sigma := line.Noise(s.Newest(loads), s.Spacing, scratch)
	begin, end, l := readable(loads, s, sigma, scratch)
	o := Projection{Lasts: line.CarriedOn * float64(l.Ticks), LevelError: l.LevelError, Most: RecentPeak(loads, sigma)}
	o.Level, o.Slope = max(0, l.Level), l.Slope*l.Trust()
	if end == len(loads) {
		o.Noise = line.Deviation(loads[begin:end])
		return o
	}
	o.Shown = loads[len(loads)-1].Effective
	if begin == end { // it has been clipped for the whole window
		o.Level = o.Shown
	}
	o.Slope = max(0, o.Slope)
	o.Hidden = float64(len(loads) - end)
	o.Level = max(o.Level, o.Shown-o.Growth(0))
	o.Least = o.Shown * (1 + hiddenGrowth)
	if o.Shown < o.Most {
		o.Most = max(o.Most, o.Least)
	} else {
		o.Most = math.Inf(1) // it has reached the peak again, and may pass it unseen
	}
	if l.Ticks < jumpTicks {
		o.Most = min(o.Most, o.Shown*(1+jumpGrowth))
	}
	return o
}

const (
	// Of recentRises ticks, lastingRises must have risen for a rise to go on: an arrival between two samples may show
	// at three ticks.
	recentRises  = 5
	lastingRises = 4
)

// count makes o the projection of a load that is counted: its level is the newest load, and it rises no faster than
// most of the newest ticks did.
func count(o *Projection, loads []series.Load) {
	newest := loads[max(0, len(loads)-1-recentRises):]
	o.Level, o.LevelError, o.Noise = newest[len(newest)-1].Effective, 0, 0
	var rises [recentRises]float64
	for k := range len(newest) - 1 {
		rises[k] = newest[k+1].Effective - newest[k].Effective
	}
	slices.Sort(rises[:])
	o.Slope = min(o.Slope, max(0, rises[recentRises-lastingRises]))
}

// readable returns the newest ticks at which the load can be read, and the line through them: those after which it has
// been clipped up to now, or those since it was clipped last. The noise of the newest loads is sigma.
func readable(loads []series.Load, s line.Sampling, sigma float64, scratch []float64) (begin, end int, l line.Line) {
	for k := 0; ; {
		from, to := clippedRun(loads, k)
		before := loads[begin:from]
		if from == len(loads) && len(s.Newest(before)) == len(s.Newest(loads)) {
			// All that it may go through can be read.
			l = line.FitWithin(s.Newest(before), line.OfTicks(sigma, s.Spacing))
		} else {
			l = line.Fit(before, s, scratch)
		}
		explained := from < len(loads) && explains(l, before, loads[from:to])
		if to == len(loads) && !explained {
			return begin, from, l
		}
		if !explained {
			begin = to
		}
		k = to
	}
}

// clippedRun returns the first clipped ticks from k on, up to where two in a row are not clipped; without any it
// returns the end of the loads twice.
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

// explains reports whether clipped ticks may be noise of the loads before them, which the line goes through.
func explains(l line.Line, before, clipped []series.Load) bool {
	if len(before) < fewTicks {
		return len(clipped) < briefly
	}
	shown := 0.0
	for k := range clipped {
		shown = max(shown, clipped[k].Effective)
	}
	n := float64(len(clipped))
	above := shown - (l.Level + l.Slope*l.Trust()*n/2)
	return above > 0 && above*math.Sqrt(n) < chance*line.Deviation(before)
}

const (
	// fallen is the share of a peak by which a load must have fallen.
	fallen = 0.3
	// peakTicks are averaged, so that a single tick is no peak.
	peakTicks = 5
)

// RecentPeak returns the highest load that the loads of the window have come down from, by a large share of it and by
// more than noise. It is infinite where they have not. Clipped loads were more than they show. The standard deviation
// of a load of x is taken to be sigma·√x.
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
		swing := max(fallen*top, 4*sigma*math.Sqrt(max(top, mean)/peakTicks))
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

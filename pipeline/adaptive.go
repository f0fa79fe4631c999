package pipeline

import (
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline/line"
	"github.com/foresail/foresail/pipeline/series"
)

// The adaptive method forecasts from straight lines through the newest loads, in place of Holt's method (paper, section 7).
// It trusts a trend as far as the loads support it:
//
//   - the line goes through as many ticks as are one line, so that it is calm where the load is and quick where it jumps;
//   - its slope counts by what noise does not explain of it, and not at all where noise may be all there is;
//   - it is carried on for little longer than it has lasted;
//   - a load that rises again is not assumed to pass its recent peak, until it does;
//   - at ticks at which instances read the maximum of the metric, and not because of one request that takes long, the load is at
//     least that. It is assumed to have gone on rising through them as it rose before, if that was for more than a moment.
//
// Its constants were chosen on the profiles and traces of internal/simulator (docs/lab.md).
const (
	// hiddenGrowth is how much more load than it shows a clipped fleet is assumed to have, at least.
	hiddenGrowth = 0.15
	// Fewer than jumpTicks do not tell a steep rise from a jump; jumpGrowth is how much more load than it shows a fleet that was
	// clipped by it is assumed to have, at most.
	jumpTicks  = 5
	jumpGrowth = 0.5
	// chance is how many standard deviations above the line before them clipped ticks may be and still count as noise.
	chance = 5
	// Fewer than fewTicks do not tell the noise of a load.
	fewTicks = 10
	// Fewer than briefly clipped ticks are ignored if the noise is unknown.
	briefly = 5
)

// adaptive is the method of this file.
type adaptive struct{ *Params }

func (p adaptive) loads(m *Memory) []series.Load {
	o := p.redistribution()
	return m.total.Sum(&m.window, &o)
}

func (p adaptive) project(loads []series.Load, ahead float64, m *Memory) projection {
	o := project(loads, line.NewSampling(m.loads.Spacing, ahead), m.scratch)
	if p.Counted {
		o.count(loads)
	}
	return o
}

// planned takes nothing away before the load has fallen, and adds a margin, which does not wait for instances to start. What cannot be
// trusted of a trend is not in the projection. What the past tells can only raise what is planned for, but for the margin.
func (p adaptive) planned(f Forecast, o projection, ticks float64) plan {
	load := f.Total
	out := plan{basis: FromForecast, margin: p.NoiseMargin * o.noise}
	raise := func(other float64, basis Basis) {
		if other > load {
			load, out.basis = other, basis
		}
	}
	raise(f.Level, FromPresent)
	raise(o.total(ticks), FromTrend)
	if o.past.known {
		raise(o.past.planned, o.past.basis)
		if p.Lateness > 0 && !math.IsNaN(o.past.margin) {
			out.margin, out.learned = bounded(o.past.margin, load), true
		}
	}
	out.load = load + out.margin
	return out
}

func (p adaptive) lookBack(r reach) reach {
	r.windowNeeded = series.Duration(math.Ceil(r.horizon / line.CarriedOn))
	if p.WindowFollowsHorizon {
		follows := min(series.Duration(math.Ceil(windowPerHorizon*r.horizon)), series.MaxTicks*p.Interval)
		r.window = max(r.window, follows)
	}
	return r
}

func (p adaptive) gap() time.Duration { return 0 }

// project returns the projection of the loads, oldest first. Scratch has room for a number for each load.
func project(loads []series.Load, s line.Sampling, scratch []float64) projection {
	sigma := line.Noise(s.Newest(loads), s.Spacing, scratch)
	begin, end, l := readable(loads, s, sigma, scratch)
	o := projection{lasts: line.CarriedOn * float64(l.Ticks), levelError: l.LevelError, most: recentPeak(loads, sigma)}
	o.level, o.slope = max(0, l.Level), l.Slope*l.Trust()
	if end == len(loads) {
		o.noise = line.Deviation(loads[begin:end])
		return o
	}
	o.shown = loads[len(loads)-1].Effective
	if begin == end { // it has been clipped for the whole window
		o.level = o.shown
	}
	o.slope = max(0, o.slope)
	o.hidden = float64(len(loads) - end)
	o.level = max(o.level, o.shown-o.growth(0))
	o.least = o.shown * (1 + hiddenGrowth)
	if o.shown < o.most {
		o.most = max(o.most, o.least)
	} else {
		o.most = math.Inf(1) // it has reached the peak again, and may pass it unseen
	}
	if l.Ticks < jumpTicks {
		o.most = min(o.most, o.shown*(1+jumpGrowth))
	}
	return o
}

const (
	// Of recentRises ticks, lastingRises must have risen for a rise to go on: an arrival between two samples may show at three ticks.
	recentRises  = 5
	lastingRises = 4
)

// count makes a projection one of a load that is counted: its level is the newest load, and it rises no faster than most of the newest
// ticks did.
func (o *projection) count(loads []series.Load) {
	newest := loads[max(0, len(loads)-1-recentRises):]
	o.level, o.levelError, o.noise = newest[len(newest)-1].Effective, 0, 0
	var rises [recentRises]float64
	for k := range len(newest) - 1 {
		rises[k] = newest[k+1].Effective - newest[k].Effective
	}
	slices.Sort(rises[:])
	o.slope = min(o.slope, max(0, rises[recentRises-lastingRises]))
}

// readable returns the newest ticks at which the load can be read, and the line through them: those after which it has been clipped
// up to now, or those since it was clipped last. The noise of the newest loads is sigma.
func readable(loads []series.Load, s line.Sampling, sigma float64, scratch []float64) (begin, end int, l line.Line) {
	for k := 0; ; {
		from, to := clippedRun(loads, k)
		before := loads[begin:from]
		if from == len(loads) && len(s.Newest(before)) == len(s.Newest(loads)) {
			l = line.FitWithin(s.Newest(before), line.OfTicks(sigma, s.Spacing)) // all that it may go through can be read
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

// clippedRun returns the first clipped ticks from k on, up to where two in a row are not; the end of the loads twice without any.
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

// recentPeak is the highest load that the loads of the window have come down from, by a large share of it and by more than noise.
// It is infinite where they have not. Clipped loads were more than they show. The standard deviation of a load of x is taken
// to be sigma·√x.
func recentPeak(loads []series.Load, sigma float64) float64 {
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

// decide follows the need both ways, unless the present count is good enough (in place of sections 8.2 to 8.5 of the
// paper): the forecast has no trend that noise explains.
func (p adaptive) decide(f Forecast, pending bool) Decision {
	d := Decision{Direction: p.direction(&f), Desired: f.Target, Reason: NoNeed}
	up, down := p.counts(&f)
	switch {
	case up > f.Target:
		d.Desired = clamp(max(up, p.Min), f.Target, p.highest(f.Target))
		d.Reason = AboveThreshold
		if up > d.Desired && d.Desired >= p.Max {
			d.Reason = AtMaximum
		}
	case down >= f.Target && f.Target >= p.Min:
		// neither too few nor too many
	case pending && f.Target >= p.Min:
		d.Reason = ScaleUpPending
	default:
		d.Desired = clamp(down, p.Min, max(f.Target, p.Min))
		d.Reason = Headroom
		if d.Desired > f.Target {
			d.Reason = BelowMinimum
		}
	}
	d.Action = actionOf(d.Desired, f.Target)
	return d
}

// counts returns the counts between which a target stays as it is.
func (p adaptive) counts(f *Forecast) (least, most int) {
	if f.Idle {
		return 0, 0
	}
	fewest, largest := p.goodEnough(f)
	return count(math.Ceil(fewest - roundingSlack)), count(math.Ceil(largest - roundingSlack))
}

// goodEnough returns those counts as real numbers. They are apart by the margin, the spillover and
// the uncertainty of the need; fewer instances than are needed are not good enough if the uncertainty is in what was learned.
func (p adaptive) goodEnough(f *Forecast) (least, most float64) {
	unknown := p.Model.Required(f.Level+2*f.Error, p.Threshold) - p.Model.Required(f.Level, p.Threshold)
	slack := p.Spillover + unknown
	short := slack
	if f.Learned {
		short = p.Spillover
	}
	return f.Required - short, f.Required*(1+p.ScaleDownMargin) + slack
}

// served is what the target can carry while that is good enough, so that an HPA without tolerance keeps it; otherwise the
// need.
func (p adaptive) served(f Forecast) float64 {
	least, most := p.counts(&f)
	if least <= f.Target && f.Target <= most && f.Target >= max(1, p.Min) {
		return p.Threshold * float64(f.Target)
	}
	return p.Threshold * f.Required
}

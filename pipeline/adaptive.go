package pipeline

import "math"

// The adaptive method forecasts from straight lines through the newest loads, in place of Holt's method (paper, section 7).
// It trusts a trend as far as the loads bear it out:
//
//   - the line goes through as many ticks as are one line, so that it is calm where the load is and quick where it jumps;
//   - its slope counts by what noise does not explain of it, and not at all where noise may be all there is;
//   - it is carried on for little longer than it has lasted;
//   - a load that comes back up is not taken to pass what it had come down from, until it does;
//   - ticks at which instances read as much as they can tell no more than that the load is at least that. The load is taken
//     to have gone on rising through them as it rose before.
//
// Its constants were chosen on the profiles and traces of internal/lab (docs/lab.md).
const (
	// carriedOn is for how much longer than it has lasted a trend is taken to go on.
	carriedOn = 1.25
	// hiddenGrowth is the share of what it shows that a clipped fleet is taken to be short of, at the least.
	hiddenGrowth = 0.15
	// chance is up to how many standard deviations clipped ticks may be above the line before them and be noise of it.
	chance = 5
	// fewTicks are too few to tell how noisy a load is.
	fewTicks = 10
	// briefly is for how many ticks a fleet may be clipped without counting as that, where nothing is known of its noise.
	briefly = 5
)

// outlook is what a method makes of the loads of the window.
type outlook struct {
	trend
	lasts       float64 // for how many ticks the trend goes on
	ahead       float64 // for how many it has gone on since the level could last be read
	shown       float64 // what a clipped fleet reads
	least, most float64 // bounds of the load at the horizon; most holds while the level is below it

	levelError float64 // standard error of the level
	noise      float64 // standard deviation of loads around the line
}

// adapt makes an outlook of the loads, oldest first. Readings are spacing ticks apart; scratch has room for a number for each
// load.
func adapt(loads []load, spacing int, scratch []float64) outlook {
	sigma := relativeNoise(newest(loads, spacing), spacing, scratch)
	begin, end := readable(loads, spacing, scratch)
	var l line
	if read := loads[begin:end]; end == len(loads) && len(newest(read, spacing)) == len(newest(loads, spacing)) {
		l = fitWithin(newest(read, spacing), ofTicks(sigma, spacing)) // all that it may go through can be read
	} else {
		l = fit(read, spacing, scratch)
	}
	o := outlook{lasts: carriedOn * float64(l.ticks), levelError: l.levelError, most: crest(loads, sigma)}
	o.level, o.slope = max(0, l.level), l.slope*l.trust()
	if end == len(loads) {
		o.noise = deviation(loads[begin:end])
		return o
	}
	o.shown = loads[len(loads)-1].effective
	if begin == end { // it has been clipped for the whole window
		o.level = o.shown
	}
	o.slope = max(0, o.slope)
	o.ahead = float64(len(loads) - end)
	o.level = max(o.level, o.shown-o.growth(0))
	o.least = o.shown * (1 + hiddenGrowth)
	if o.shown < o.most {
		o.most = max(o.most, o.least)
	} else {
		o.most = math.Inf(1) // it has come to the crest again, and may pass it unseen
	}
	return o
}

// growth is how far the load rises or falls from the level in a number of ticks from the newest.
func (o *outlook) growth(ticks float64) float64 {
	return o.slope * min(o.ahead+ticks, o.lasts)
}

// present is the load now: of a clipped fleet no less than it shows.
func (o *outlook) present() float64 {
	if o.ahead == 0 {
		return o.level
	}
	return min(max(o.level+o.growth(0), o.shown), max(o.most, o.shown))
}

// total is the load in a number of ticks from the newest.
func (o *outlook) total(ticks float64) float64 {
	total := max(0, o.level+o.growth(ticks), o.least)
	if o.level < o.most {
		return min(total, o.most)
	}
	return total
}

// readable returns the newest ticks at which the load can be read: those after which it has been clipped up to now, or
// those since it was clipped last.
func readable(loads []load, spacing int, scratch []float64) (begin, end int) {
	for k := 0; ; {
		from, to := clippedRun(loads, k)
		if from == len(loads) {
			return begin, from
		}
		before := loads[begin:from]
		if !explains(fit(before, spacing, scratch), before, loads[from:to]) {
			if to == len(loads) {
				return begin, from
			}
			begin = to
		}
		k = to
	}
}

// clippedRun returns the first clipped ticks from k on, up to where two in a row are not; the end of the loads twice without any.
func clippedRun(loads []load, k int) (from, to int) {
	for k < len(loads) && !loads[k].clipped {
		k++
	}
	for from, to = k, k; k < len(loads) && k <= to+1; k++ {
		if loads[k].clipped {
			to = k + 1
		}
	}
	return from, to
}

// explains tells whether clipped ticks may be no more than the noise of the loads before them, which the line goes through.
func explains(l line, before, clipped []load) bool {
	if len(before) < fewTicks {
		return len(clipped) < briefly
	}
	shown := 0.0
	for _, x := range clipped {
		shown = max(shown, x.effective)
	}
	n := float64(len(clipped))
	above := shown - (l.level + l.slope*l.trust()*n/2)
	return above > 0 && above*math.Sqrt(n) < chance*deviation(before)
}

package pipeline

import "math"

// horizons are those that are learned, in seconds. Between them forecasts are interpolated.
var horizons = [...]float64{15, 30, 60, 120, 240, 480, 960}

// horizon is what has been learned for one horizon.
type horizon struct {
	regression         // how far the load is off the mean of half a minute then, in units of description.scale
	margin     float64 // of what is planned for, in mean absolute errors
}

const (
	// leastLooks are needed before something is known, and marginLooks before a margin is.
	leastLooks, marginLooks = 40, 120
	// aroundTime is for how long before and after a time its rate is the mean of the load (s).
	aroundTime = 10

	// A margin begins with firstMargin mean absolute errors, and rises by marginStep of one each time that the load was above what was
	// planned for. While it is not, it falls by that times the lateness asked for: in the long run it is late for just that share.
	// This is the quantile tracker of conformal control (Angelopoulos, Candès and Tibshirani, 2023).
	firstMargin, marginStep = 3, 0.1
	// largestMargin is the largest margin as a share of the load: beyond that more instances would have to wait for jumps that nobody
	// can know than there are.
	largestMargin = 0.5
	// spare is the share of an instance that is not ordered for its own sake.
	spare = 0.1
)

// learn takes note of the rate that came some seconds after a description.
func (h *horizon) learn(d *description, seconds float64, s *season, rate float64, of *kind) {
	x := d.features(seconds, s)
	if h.looks >= leastLooks {
		h.track(d, seconds, s, d.base+h.at(&x)*d.scale, rate, of)
	} else {
		h.margin = firstMargin
	}
	h.regression.learn(&x, (rate-d.base)/d.scale, math.Ceil((seconds+aroundTime)*1000/learnEach))
}

// track adapts the margin to whether more came than the instances would have been planned for.
func (h *horizon) track(d *description, seconds float64, s *season, expected, rate float64, of *kind) {
	if of.lateness == 0 {
		return
	}
	planned := d.planned(expected, d.at, seconds, s)
	margin := min(h.margin*h.size*d.scale, largestMargin*planned)
	instances := math.Ceil((planned+margin)/of.threshold - spare)
	switch {
	case rate <= instances*of.threshold:
		h.margin = max(0, h.margin-marginStep*of.lateness)
	case h.margin*h.size*d.scale <= largestMargin*planned: // a larger one would count
		h.margin += marginStep * (1 - of.lateness)
	}
}

// planned is the load to plan for, without a margin, if one is expected in some seconds. Jumps may come from a time on that is now.
func (d *description) planned(expected float64, now int64, seconds float64, s *season) float64 {
	return max(d.base, expected, d.straight(seconds), s.jumps.due(now, d.at+int64(seconds*1000)))
}

// expect returns what is known of the load in some seconds.
func (p *Past) expect(d *description, now int64, seconds float64) recalled {
	k := 0
	for k < len(horizons)-2 && seconds > horizons[k+1] {
		k++
	}
	near, far := &p.horizons[k], &p.horizons[k+1]
	if near.looks < leastLooks {
		near = far // of a load that is not read often enough for it
	}
	if far.looks < leastLooks || near.looks < leastLooks {
		return recalled{}
	}
	share := math.Log(max(1, seconds)/horizons[k]) / math.Log(horizons[k+1]/horizons[k])
	share = min(1, max(0, share))
	between := func(a, b float64) float64 { return a + (b-a)*share }
	x := d.features(seconds, &p.season)
	margin := math.NaN()
	if near.looks >= marginLooks && far.looks >= marginLooks {
		margin = between(near.margin*near.size, far.margin*far.size) * d.scale
	}
	highest := 2 * max(d.base, d.base+d.shape[0]*d.scale) // no more than twice of what is
	total := min(max(0, d.base+between(near.at(&x), far.at(&x))*d.scale), max(highest, d.straight(seconds)))
	return recalled{known: true, total: total, planned: d.planned(total, now, seconds, &p.season), margin: margin}
}

package learn

import (
	"math"

	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/series"
)

// horizons are those that are learned, in seconds. Between them forecasts are interpolated.
var horizons = [...]float64{15, 30, 60, 120, 240, 480, mostSeconds}

// mostSeconds is the furthest of them.
const mostSeconds = 960

// horizon is what has been learned for one horizon.
type horizon struct {
	regression         // how far the load is off the mean of half a minute then, in units of description.scale
	margin     float64 // of what is planned for, in mean absolute errors
	before     promises
	ordered    float64 // how many instances there would be for what is planned for
	asked      float64 // how many of them were asked for at the look before; 0 if that is longer ago
}

// promise is what a horizon adds to what is expected, and how much it would add for a jump that may come, in units of description.scale.
type promise struct{ margin, forJump short }

// promises are the newest, one for each look: whether a forecast was late depends on the margin of when it was made. Nearer horizons need
// less of them, lookBacks.
type promises [mostSeconds*1000/learnEach + 2]promise

// lookBacks is how many of the newest looks a horizon needs the promises of.
func lookBacks(seconds float64) int { return int(seconds*1000)/learnEach + 2 }

// at is the place of the promise of a time.
func (m *promises) at(t int64, seconds float64, of *kind) *promise {
	return &m[series.FloorMod(series.FloorDiv(t, of.lookEach()), int64(lookBacks(seconds)))]
}

// shift makes them so many looks earlier.
func (m *promises) shift(looks int64, seconds float64) {
	n := int64(lookBacks(seconds))
	was := *m
	for i := range n {
		m[i] = was[series.FloorMod(i+looks, n)]
	}
}

const (
	// leastKnown is how long a load must have been looked at before something is known, of what comes within nearest (s) leastNear, as these
	// looks overlap less. Margins are learned after leastKnown and known after leastMargin (ms).
	leastKnown, leastMargin = 10 * minute, 30 * minute
	nearest, leastNear      = 60, 5 * minute
	// aroundTime is for how long before and after a time its rate is the mean of the load (s).
	aroundTime = 10

	// A margin begins with firstMargin mean absolute errors, and rises by marginStep of one each time that the load was above what was
	// planned for. While it is not, it falls by that times the lateness asked for: in the long run it is late for just that share.
	// This is the quantile tracker of conformal control (Angelopoulos, Candès and Tibshirani, 2023).
	firstMargin, marginStep = 3, 0.1
	// mostErrors is the largest margin in mean absolute errors: of loads that hardly vary these say little.
	mostErrors = 30
	// heavyTails is how many times as large as by Laplace's distribution the price is that follows from a margin: large errors are more
	// frequent.
	heavyTails = 3
	// heldFor is for how long an HPA keeps instances that are no longer asked for (ms).
	heldFor = 30_000
	// mostGrowth is how many times as much as now is expected at most. With less, a load that doubles in the time that instances
	// take is late each time.
	mostGrowth = 4
	// spare is the share of an instance that is not ordered for its own sake.
	spare = 0.1
)

// learn takes note of the rate that came some seconds after a description. A clipped one was at least that.
func (h *horizon) learn(d *description, seconds float64, s *season, rate float64, clipped bool, of *kind) {
	x := d.features(seconds, s)
	if h.knows(leastKnown+int64(seconds*1000), of) { // what was promised then followed from something
		h.track(d, seconds, s, d.likely(h.at(&x), seconds), rate, clipped, of)
	}
	if !clipped {
		each := float64(of.lookEach())
		h.regression.learn(&x, (rate-d.base)/d.scale, math.Ceil((seconds+aroundTime)*1000/each), each)
	}
}

// remember keeps what is promised at a time.
func (h *horizon) remember(t int64, seconds float64, s *season, of *kind) {
	if !h.knows(leastKnown, of) {
		h.margin = firstMargin
	}
	if of.lateness == 0 {
		return
	}
	share, _ := s.hourly(t, t+int64(seconds*1000)+of.lookEach()) // for all descriptions until the next look
	kept := func(v float64) short { return shortOf(min(v, math.MaxFloat32/2)) }
	*h.before.at(t, seconds, of) = promise{kept(h.margin * h.size), kept(share * h.price(h.margin))}
}

// knows reports whether the load has been looked at for some time (ms).
func (h *horizon) knows(least int64, of *kind) bool {
	return h.looks*float64(of.lookEach()) >= float64(least)
}

// track adapts the margin to whether more came than the instances hold that were ordered by what was promised then. As with decide, a count
// that is good enough stays as it is. Of a clipped load it may not be known.
func (h *horizon) track(d *description, seconds float64, s *season, expected, rate float64, clipped bool, of *kind) {
	if of.lateness == 0 {
		return
	}
	then := h.before.at(d.at, seconds, of)
	_, jump := s.hourly(d.at, d.at+int64(seconds*1000))
	margin := then.margin.value() * d.scale
	planned, chance := withJump(d.planned(expected, d.at, seconds, s), jump, margin, then.forJump.value()*d.scale)
	margin = decide.BoundedMargin(margin, planned)
	required := (planned + margin) / of.threshold
	h.order(math.Ceil(required-spare), math.Ceil(required*(1+of.scaleDownMargin)+spare), of)
	late := rate > h.ordered*of.threshold
	switch {
	case !late && !clipped:
		h.margin = max(0, h.margin-marginStep*of.lateness)
	case late && rate > planned+margin && (rate <= chance || h.margin*h.size*d.scale <= decide.LargestMargin*planned): // a larger one would count
		h.margin = min(h.margin+marginStep*(1-of.lateness), mostErrors)
	}
}

// price is how much more load may be planned for at one look so that one look less is late, in units of description.scale: as much as a
// larger margin would take for that, if errors have Laplace's distribution.
func (h *horizon) price(margin float64) float64 { return heavyTails * 2 * h.size * math.Exp(margin) }

// order adapts how many instances there would be to between how many are good enough. An HPA with the stabilization window of scaling down
// that docs/hpa.md recommends, heldFor, keeps the highest count that was asked for within less than that: now, and at the look before
// if looks are not as far apart.
func (h *horizon) order(least, most float64, of *kind) {
	if of.lookEach() >= heldFor {
		h.asked = 0
	}
	asked := max(least, min(h.ordered, most))
	h.ordered, h.asked = max(asked, h.asked), asked
}

// likely is the load in some seconds that is so far off the mean of half a minute, in units of scale: at most mostGrowth times what there
// is, unless the line leads farther. The margin is learned of the same.
func (d *description) likely(off, seconds float64) float64 {
	highest := mostGrowth * max(d.base, d.base+d.shape[0]*d.scale)
	return min(max(0, d.base+off*d.scale), max(highest, d.straight(seconds)))
}

// planned is the load to plan for, without a margin, if one is expected in some seconds. Jumps may come from a time on that is now.
func (d *description) planned(expected float64, now int64, seconds float64, s *season) float64 {
	return max(d.base, expected, d.straight(seconds), s.jumps.due(now, d.at+int64(seconds*1000)))
}

// basis returns where a planned load comes from.
func (d *description) basis(planned, expected, seconds float64) decide.Basis {
	switch planned {
	case expected:
		return decide.FromForecast
	case d.base:
		return decide.FromRecent
	case d.straight(seconds):
		return decide.FromTrend
	default:
		return decide.FromJump
	}
}

// withJump plans for a jump that may come if what that adds is worth it. If not, chance is what it would come to.
func withJump(load, jump, margin, worth float64) (planned, chance float64) {
	without, with := load+decide.BoundedMargin(margin, load), jump+decide.BoundedMargin(margin, jump)
	switch {
	case jump <= without: // it is no more than is planned for
		return load, 0
	case worth > with-without:
		return jump, 0
	}
	return load, with
}

// marginFor is the margin for a lateness (0: as learned), in mean absolute errors. It is learned for one lateness. For another one, which
// holds for hours in a window of a schedule, it would be learned too late. So it follows from that one by the distribution of errors that
// asks for more: for a smaller lateness that of Laplace, of which the share e is beyond ln(1/2e) of them, for a larger one the normal one.
func (h *horizon) marginFor(lateness float64, of *kind) float64 {
	switch {
	case lateness == of.lateness || lateness == 0 || of.lateness == 0:
		return h.margin
	case lateness < of.lateness:
		return min(h.margin+math.Log(of.lateness/lateness), mostErrors)
	}
	beyond := func(share float64) float64 { return math.Erfinv(1 - 2*share) }
	return h.margin * beyond(lateness) / beyond(of.lateness)
}

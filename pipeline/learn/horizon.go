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

// horizon holds what has been learned for one horizon.
type horizon struct {
	regression         // how far the load is off the mean of half a minute then, in units of description.scale
	margin     float64 // of the planned load, in mean absolute errors
	before     promises
	ordered    float64 // the number of instances that the planned load would have
	asked      float64 // how many of them the previous look requested; 0 if it is longer ago
}

// promise is the margin that a horizon adds to the expected load, and how much it would add for a jump that may come,
// in units of description.scale.
type promise struct{ margin, forJump short }

// promises are the newest ones, one for each look: whether a forecast was late depends on the margin at the time when
// it was made. Nearer horizons need fewer of them, see lookBacks.
type promises [mostSeconds*1000/learnEach + 2]promise

// lookBacks returns the number of the newest looks whose promises a horizon needs.
func lookBacks(seconds float64) int { return int(seconds*1000)/learnEach + 2 }

// at returns the place of the promise of a time.
func (m *promises) at(t int64, seconds float64, of *kind) *promise {
	return &m[series.FloorMod(series.FloorDiv(t, of.lookEach()), int64(lookBacks(seconds)))]
}

// shift moves the promises to earlier by a number of looks.
func (m *promises) shift(looks int64, seconds float64) {
	n := int64(lookBacks(seconds))
	was := *m
	for i := range n {
		m[i] = was[series.FloorMod(i+looks, n)]
	}
}

const (
	// leastKnown is the time for which a load must have been looked at before its forecasts count, and leastNear that
	// of forecasts within nearest (s), whose looks overlap less. Margins are learned after leastKnown and known after
	// leastMargin (ms).
	leastKnown, leastMargin = 10 * minute, 30 * minute
	nearest, leastNear      = 60, 5 * minute
	// aroundTime is half the averaging window around a time, in seconds.
	aroundTime = 10

	// A margin begins with firstMargin mean absolute errors, and rises by marginStep of one each time that the load was
	// above the planned one. Otherwise it falls by that times the requested lateness: in the long run it is late for
	// just that share. This is the quantile tracker of conformal control (Angelopoulos, Candès and Tibshirani, 2023).
	firstMargin, marginStep = 3, 0.1
	// mostErrors is the largest margin in mean absolute errors: errors of loads that hardly vary say little.
	mostErrors = 30
	// heavyTails is the factor by which the price that follows from a margin is larger than by Laplace's distribution,
	// as large errors are more frequent.
	heavyTails = 3
	// heldFor is the time for which an HPA keeps instances that are no longer requested (ms).
	heldFor = 30_000
	// mostGrowth caps the expected load as a factor of the present one. With less, forecasts are late each time that a
	// load doubles in the time that instances take to start.
	mostGrowth = 4
	// spare is the share of an instance that is not ordered for its own sake.
	spare = 0.1
)

// learn adds the rate that came some seconds after a description. A clipped one was at least that.
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

// remember keeps the promise of a time.
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

// track adapts the margin to whether the load was more than the instances hold that the promise of then had ordered. As
// in stage five, a count that is good enough stays. For a clipped load that may not be known.
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

// price returns how much more load may be planned at one look so that one look less is late, in units of
// description.scale: as much as a larger margin would need for that, if errors have Laplace's distribution.
func (h *horizon) price(margin float64) float64 { return heavyTails * 2 * h.size * math.Exp(margin) }

// order adapts the number of instances to the range that is good enough. An HPA with the stabilization window that
// docs/hpa.md recommends for scaling down, heldFor, keeps the highest count that was requested within it: now, and at
// the previous look if looks are closer together.
func (h *horizon) order(least, most float64, of *kind) {
	if of.lookEach() >= heldFor {
		h.asked = 0
	}
	asked := max(least, min(h.ordered, most))
	h.ordered, h.asked = max(asked, h.asked), asked
}

// likely returns the load in some seconds that is off (in units of scale) from the mean of half a minute: at most
// mostGrowth times the present load, unless the line leads farther. The margin is learned from the same.
func (d *description) likely(off, seconds float64) float64 {
	highest := mostGrowth * max(d.base, d.base+d.shape[0]*d.scale)
	return min(max(0, d.base+off*d.scale), max(highest, d.straight(seconds)))
}

// planned returns the load to plan for, without a margin, if a load is expected in some seconds. Jumps may come from
// now on (ms).
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

// withJump plans for a jump that may come if the added load is worth it. If not, chance is the load with it.
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

// marginFor returns the margin for a lateness (0: as learned), in mean absolute errors. It is learned for one lateness.
// For another one, which holds for hours in a window of a schedule, it would be learned too late. So it follows from
// the learned one by the distribution of errors that requires more: for a smaller lateness that of Laplace, of which
// the share e is beyond ln(1/2e) of them, for a larger one the normal one.
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

package learn

import (
	"math"

	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/series"
)

// horizons are the learned horizons in seconds. Forecasts in between are interpolated.
var horizons = [...]float64{15, 30, 60, 120, 240, 480, maxSeconds}

// maxSeconds is the longest horizon.
const maxSeconds = 960

// horizon holds what was learned for one horizon.
type horizon struct {
	regression         // predicts the difference from the mean of half a minute, in units of description.scale
	margin     float64 // of the planned load, in mean absolute errors
	planned    plannedMargins
	ordered    float64 // the number of instances that would run for the planned load
	requested  float64 // the number that the previous evaluation requested; 0 if that was longer ago
}

// plannedMargin is the margin that was added to the expected load, and how much it was worth adding for a
// possible jump, in units of description.scale.
type plannedMargin struct{ margin, forJump bf16 }

// plannedMargins are those of the newest evaluations: whether a forecast was late depends on the margin at the
// time when it was made. Shorter horizons need fewer of them, see marginSlots.
type plannedMargins [maxSeconds*1000/evaluationInterval + 2]plannedMargin

// marginSlots returns the number of planned margins that a horizon needs.
func marginSlots(seconds float64) int { return int(seconds*1000)/evaluationInterval + 2 }

// slot returns the memory for the planned margin of a time.
func (m *plannedMargins) slot(t int64, seconds float64, of *loadKey) *plannedMargin {
	return &m[series.FloorMod(series.FloorDiv(t, of.evaluationEvery()), int64(marginSlots(seconds)))]
}

// shift moves the planned margins to earlier by a number of evaluations.
func (m *plannedMargins) shift(looks int64, seconds float64) {
	n := int64(marginSlots(seconds))
	was := *m
	for i := range n {
		m[i] = was[series.FloorMod(i+looks, n)]
	}
}

const (
	// minKnown is the evaluated time from which a forecast is used (ms), and minKnownNear that for forecasts within
	// nearSeconds, whose evaluations overlap less. Margins are learned after minKnown and used after minMarginKnown (ms).
	minKnown, minMarginKnown  = 10 * minute, 30 * minute
	nearSeconds, minKnownNear = 60, 5 * minute
	// aroundTime is half the averaging window around a time, in seconds.
	aroundTime = 10

	// firstMargin and marginStep adapt the margin: it begins with firstMargin mean absolute errors.
	// Each time the load exceeds the planned load it rises by marginStep·(1 - lateness), otherwise it
	// falls by marginStep·lateness. In the long run forecasts are late for just that share. This is
	// the quantile tracker of conformal control (Angelopoulos, Candès and Tibshirani, 2023).
	firstMargin, marginStep = 3, 0.1
	// maxMargin is the largest margin in mean absolute errors: for loads that hardly vary, more says little.
	maxMargin = 30
	// heavyTails is the factor of the price of a margin over that of Laplace's distribution, because large
	// errors are more frequent.
	heavyTails = 3
	// heldFor is the time for which an HPA keeps instances that are no longer requested (ms).
	heldFor = 30_000
	// maxGrowth caps the expected load as a factor of the present one. With less, forecasts are late each time
	// a load doubles within the startup time.
	maxGrowth = 4
	// spareShare is the share of an instance for which no instance is added.
	spareShare = 0.1
)

// learn adds the rate that followed a description after some seconds. A clipped rate is a lower bound.
func (h *horizon) learn(d *description, seconds float64, s *season, rate float64, clipped bool, of *loadKey) {
	x := d.features(seconds, s)
	if h.observedFor(minKnown+int64(seconds*1000), of) { // the margin that was planned then was learned
		h.updateMargin(d, seconds, s, d.expectedLoad(h.at(&x), seconds), rate, clipped, of)
	}
	if !clipped {
		each := float64(of.evaluationEvery())
		h.regression.learn(&x, (rate-d.base)/d.scale, math.Ceil((seconds+aroundTime)*1000/each), each)
	}
}

// recordMargin stores the planned margin of a time.
func (h *horizon) recordMargin(t int64, seconds float64, s *season, of *loadKey) {
	if !h.observedFor(minKnown, of) {
		h.margin = firstMargin
	}
	if of.lateness == 0 {
		return
	}
	share, _ := s.hourly(t, t+int64(seconds*1000)+of.evaluationEvery()) // for all descriptions until the next evaluation
	kept := func(v float64) bf16 { return toBF16(min(v, math.MaxFloat32/2)) }
	*h.planned.slot(t, seconds, of) = plannedMargin{kept(h.margin * h.size), kept(share * h.marginPrice(h.margin))}
}

// observedFor reports whether the load has been evaluated for at least minTime (ms).
func (h *horizon) observedFor(minTime int64, of *loadKey) bool {
	return h.evaluations*float64(of.evaluationEvery()) >= float64(minTime)
}

// updateMargin adapts the margin to whether the load exceeded the capacity of the instances that had been
// ordered for it. As in stage five, an acceptable count does not change. For a clipped load this may not be
// known.
func (h *horizon) updateMargin(d *description, seconds float64, s *season, expected,
	rate float64, clipped bool, of *loadKey) {
	if of.lateness == 0 {
		return
	}
	then := h.planned.slot(d.at, seconds, of)
	_, jump := s.hourly(d.at, d.at+int64(seconds*1000))
	margin := then.margin.value() * d.scale
	planned, chance := withJump(d.plannedLoad(expected, d.at, seconds, s), jump, margin, then.forJump.value()*d.scale)
	margin = decide.BoundedMargin(margin, planned)
	required := (planned + margin) / of.threshold
	h.updateOrdered(math.Ceil(required-spareShare), math.Ceil(required*(1+of.scaleDownMargin)+spareShare), of)
	late := rate > h.ordered*of.threshold
	switch {
	case !late && !clipped:
		h.margin = max(0, h.margin-marginStep*of.lateness)
	case late && rate > planned+margin && (rate <= chance || h.margin*h.size*d.scale <= decide.MaxMargin*planned):
		// a larger margin would be used
		h.margin = min(h.margin+marginStep*(1-of.lateness), maxMargin)
	}
}

// marginPrice returns how much more load is worth planning at one evaluation so that one evaluation less is
// late, in units of description.scale: as much as a larger margin would need for that, if errors have Laplace's
// distribution.
func (h *horizon) marginPrice(margin float64) float64 {
	return heavyTails * 2 * h.size * math.Exp(margin)
}

// updateOrdered adapts the number of instances to the acceptable range. An HPA with the stabilization window
// for scale-down that docs/hpa.md recommends, heldFor, keeps the highest count that was requested within that
// window: now, and at the previous evaluation if evaluations are closer together.
func (h *horizon) updateOrdered(minCount, maxCount float64, of *loadKey) {
	if of.evaluationEvery() >= heldFor {
		h.requested = 0
	}
	requested := max(minCount, min(h.ordered, maxCount))
	h.ordered, h.requested = max(requested, h.requested), requested
}

// expectedLoad returns the load in some seconds for a predicted difference from the mean of half a minute (in
// units of scale). It is at most maxGrowth times the present load, unless the line leads further. The margin is
// learned from the same value.
func (d *description) expectedLoad(off, seconds float64) float64 {
	highest := maxGrowth * max(d.base, d.base+d.shape[0]*d.scale)
	return min(max(0, d.base+off*d.scale), max(highest, d.onLine(seconds)))
}

// plannedLoad returns the load to plan for, without a margin. Jumps are due from now on (ms).
func (d *description) plannedLoad(expected float64, now int64, seconds float64, s *season) float64 {
	return max(d.base, expected, d.onLine(seconds), s.jumps.largestDue(now, d.at+int64(seconds*1000)))
}

// basis returns the source of a planned load.
func (d *description) basis(planned, expected, seconds float64) decide.Basis {
	switch planned {
	case expected:
		return decide.FromForecast
	case d.base:
		return decide.FromRecent
	case d.onLine(seconds):
		return decide.FromTrend
	default:
		return decide.FromJump
	}
}

// withJump plans for a possible jump if that is worth the added load. If not, chance is the load including the
// jump.
func withJump(load, jump, margin, worth float64) (planned, chance float64) {
	without, with := load+decide.BoundedMargin(margin, load), jump+decide.BoundedMargin(margin, jump)
	switch {
	case jump <= without: // covered by the plan
		return load, 0
	case worth > with-without:
		return jump, 0
	}
	return load, with
}

// marginFor returns the margin for a lateness (0: the learned one), in mean absolute errors.
//
// The margin is learned for one lateness. A window of a schedule may have another lateness for some hours, too
// short to learn. Its margin follows from the learned one by the distribution of errors that requires more: for
// a smaller lateness Laplace's, where a share e of errors is beyond ln(1/2e) mean absolute errors; for a larger
// one the normal distribution.
func (h *horizon) marginFor(lateness float64, of *loadKey) float64 {
	switch {
	case lateness == of.lateness || lateness == 0 || of.lateness == 0:
		return h.margin
	case lateness < of.lateness:
		return min(h.margin+math.Log(of.lateness/lateness), maxMargin)
	}
	beyond := func(share float64) float64 { return math.Erfinv(1 - 2*share) }
	return h.margin * beyond(lateness) / beyond(of.lateness)
}

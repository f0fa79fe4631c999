package decide

import "math"

// holt is the paper's decision (sections 8.2 to 8.5).
type holt struct{ *Options }

// plan discounts a rise by the risk of acting on it.
func (h holt) plan(p Prospect, total float64) plan {
	if p.Growth > 0 && p.Level > 0 {
		return plan{load: p.Level + p.Growth*h.RiskFactor/(h.RiskFactor+p.Growth/p.Level)}
	}
	return plan{load: total}
}

func (h holt) served(l Outlook) float64 { return h.Threshold * l.Required }

// need returns the load that the decision counts instances for: the present one, unless it rises.
func (h holt) need(l Outlook) Need {
	n := Need{Load: l.Damped, Basis: FromForecast, Each: h.Model.Load(h.Threshold)}
	if l.Damped != l.Total {
		n.Basis = FromDamped
	}
	n.Least = l.Required
	if l.LoadNow < h.Threshold {
		n.Least -= h.Spillover
	}
	n.Most = l.Required
	if !h.rises(&l) {
		n.Load, n.Basis, n.Least = l.Level, FromPresent, h.Model.Required(l.Level, h.Threshold)
		n.Most = h.Model.Required(l.Level, h.Threshold/(1+h.ScaleDownMargin))
	}
	return n
}

func (h holt) decide(l Outlook, pending bool) Decision {
	d := Decision{Direction: h.direction(&l), Reason: NoNeed}
	desired, tau := l.Target, h.Threshold
	switch {
	case h.rises(&l):
		desired = clamp(h.fewest(l), l.Target, h.highest(l.Target))
		d.Reason = h.scaleUpReason(desired, &l)
	case l.LoadPredicted >= tau:
		// exactly at the threshold: nothing to gain either way
	case l.LoadNow >= tau:
		d.Reason = StillOverloaded
	case pending:
		d.Reason = ScaleUpPending
	default:
		n := count(math.Floor(h.Model.Required(l.Level, tau/(1+h.ScaleDownMargin))+RoundingSlack) + 1)
		desired = clamp(n, h.Min, l.Target)
		if desired < l.Target {
			d.Reason = Headroom
		} else if desired > l.Target {
			d.Reason = BelowMinimum
		}
	}
	return d.to(desired, l.Target)
}

// rises reports whether instances are counted for the horizon, and not for the present.
func (h holt) rises(l *Outlook) bool {
	return h.direction(l) == Rising || l.LoadPredicted > h.Threshold
}

// fewest is ⌈N(A_ω, τ)⌉, less the last instance if the need for it is a sliver of it and nothing is overloaded yet.
func (h holt) fewest(l Outlook) int {
	n := math.Ceil(l.Required - RoundingSlack)
	if l.LoadNow < h.Threshold && l.Required-(n-1) < h.Spillover {
		n--
	}
	return count(n)
}

func (h holt) scaleUpReason(desired int, l *Outlook) Reason {
	switch {
	case l.LoadPredicted <= h.Threshold:
		return TrendRising
	case desired > l.Target:
		return AboveThreshold
	case desired >= h.Max && l.Required > float64(desired)+RoundingSlack:
		return AtMaximum
	default:
		return NoNeed
	}
}

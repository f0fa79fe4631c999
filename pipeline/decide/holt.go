package decide

import "math"

// holt is the paper's decision (sections 8.2 to 8.5).
type holt struct{ *Options }

// plan discounts a rise by the risk of acting on it.
func (h holt) plan(p Input, total float64) plan {
	if p.Growth > 0 && p.Level > 0 {
		return plan{load: p.Level + p.Growth*h.RiskFactor/(h.RiskFactor+p.Growth/p.Level)}
	}
	return plan{load: total}
}

// servedLoad returns the load that Required instances carry at the threshold.
func (h holt) servedLoad(a Assessment) float64 { return h.Threshold * a.Required }

// need returns the load that the decision is based on: the planned load if the load rises, otherwise the
// present load.
func (h holt) need(a Assessment) Need {
	n := Need{Load: a.PlannedLoad, Basis: FromForecast, PerInstance: h.Model.Load(h.Threshold)}
	if a.PlannedLoad != a.Total {
		n.Basis = FromDamped
	}
	n.Min = a.Required
	if a.LoadNow < h.Threshold {
		n.Min -= h.Spillover
	}
	n.Max = a.Required
	if !h.rises(&a) {
		n.Load, n.Basis, n.Min = a.Level, FromPresent, h.Model.Required(a.Level, h.Threshold)
		n.Max = h.Model.Required(a.Level, h.Threshold/(1+h.ScaleDownMargin))
	}
	return n
}

// decide follows the planned load if the load rises, and otherwise scales down to the present load with a
// margin.
func (h holt) decide(a Assessment, pending bool) Decision {
	d := Decision{Direction: h.direction(&a), Reason: NoNeed}
	desired, tau := a.Target, h.Threshold
	switch {
	case h.rises(&a):
		desired = clamp(h.minInstances(a), a.Target, h.highest(a.Target))
		d.Reason = h.scaleUpReason(desired, &a)
	case a.LoadPredicted >= tau:
		// exactly at the threshold: no change
	case a.LoadNow >= tau:
		d.Reason = StillOverloaded
	case pending:
		d.Reason = ScaleUpPending
	default:
		n := toCount(math.Floor(h.Model.Required(a.Level, tau/(1+h.ScaleDownMargin))+RoundingSlack) + 1)
		desired = clamp(n, h.Min, a.Target)
		if desired < a.Target {
			d.Reason = Headroom
		} else if desired > a.Target {
			d.Reason = BelowMinimum
		}
	}
	return d.withDesired(desired, a.Target)
}

// rises reports whether the decision is based on the horizon and not on the present.
func (h holt) rises(a *Assessment) bool {
	return h.direction(a) == Rising || a.LoadPredicted > h.Threshold
}

// minInstances is ⌈N(A_ω, τ)⌉, minus the last instance if only a small share of it is needed and the present
// load is below the threshold.
func (h holt) minInstances(a Assessment) int {
	n := math.Ceil(a.Required - RoundingSlack)
	if a.LoadNow < h.Threshold && a.Required-(n-1) < h.Spillover {
		n--
	}
	return toCount(n)
}

// scaleUpReason returns the reason for a desired count while the load rises.
func (h holt) scaleUpReason(desired int, a *Assessment) Reason {
	switch {
	case a.LoadPredicted <= h.Threshold:
		return TrendRising
	case desired > a.Target:
		return AboveThreshold
	case desired >= h.Max && a.Required > float64(desired)+RoundingSlack:
		return AtMaximum
	default:
		return NoNeed
	}
}

package decide

import "math"

// adaptive decides by the adaptive method (in place of sections 8.2 to 8.5 of the paper). It follows
// the need in both directions, unless the present count is within the acceptable range. It needs no damping,
// because its forecast contains no trend that noise explains.
type adaptive struct{ *Options }

// plan never plans for less than the present load, and adds a margin at once, without waiting for instances to
// start. The untrusted part of a trend is not in the input. Apart from the margin, learning can only raise the
// plan.
func (m adaptive) plan(p Input, total float64) plan {
	load := total
	out := plan{basis: FromForecast, margin: m.NoiseMargin * p.Noise}
	raise := func(other float64, basis Basis) {
		if other > load {
			load, out.basis = other, basis
		}
	}
	raise(p.Level, FromPresent)
	raise(p.TrendTotal, FromTrend)
	if p.Expected.Known {
		raise(p.Expected.Planned, p.Expected.Basis)
		if m.Lateness > 0 && !math.IsNaN(p.Expected.Margin) {
			out.margin, out.marginLearned = BoundedMargin(p.Expected.Margin, load), true
		}
	}
	out.load = load + out.margin
	return out
}

// servedLoad returns the load that the target can carry if the target is acceptable, so that an HPA without
// tolerance keeps it; otherwise the load that is needed.
func (m adaptive) servedLoad(a Assessment) float64 {
	minCount, maxCount := m.acceptableCounts(&a)
	if minCount <= a.Target && a.Target <= maxCount && a.Target >= max(1, m.Min) {
		return m.Threshold * float64(a.Target)
	}
	return m.Threshold * a.Required
}

// need returns the load that the decision is based on, with the acceptable range.
func (m adaptive) need(a Assessment) Need {
	n := Need{Load: a.PlannedLoad, Margin: a.Need.Margin, Basis: a.Need.Basis, PerInstance: m.Model.Load(m.Threshold)}
	n.Min, n.Max = m.acceptableRange(&a)
	return n
}

// decide changes the target only if it is outside the acceptable range.
func (m adaptive) decide(a Assessment, pending bool) Decision {
	d := Decision{Direction: m.direction(&a), Reason: NoNeed}
	desired := a.Target
	up, down := m.acceptableCounts(&a)
	switch {
	case up > a.Target:
		desired = clamp(max(up, m.Min), a.Target, m.highest(a.Target))
		d.Reason = AboveThreshold
		if up > desired && desired >= m.Max {
			d.Reason = AtMaximum
		}
	case down >= a.Target && a.Target >= m.Min:
		// Within the range in which the target stays: at least up, at most down.
	case pending && a.Target >= m.Min:
		d.Reason = ScaleUpPending
	default:
		desired = clamp(down, m.Min, max(a.Target, m.Min))
		d.Reason = Headroom
		if desired > a.Target {
			d.Reason = BelowMinimum
		}
	}
	return d.withDesired(desired, a.Target)
}

// minInstances returns the smallest acceptable count.
func (m adaptive) minInstances(a Assessment) int {
	least, _ := m.acceptableCounts(&a)
	return least
}

// acceptableCounts returns the smallest and the largest target that the method leaves unchanged.
func (m adaptive) acceptableCounts(a *Assessment) (minCount, maxCount int) {
	if a.Idle {
		return 0, 0
	}
	low, high := m.acceptableRange(a)
	return toCount(math.Ceil(low - RoundingSlack)), toCount(math.Ceil(high - RoundingSlack))
}

// acceptableRange returns these counts as real numbers. The range covers the margin, the spillover and the
// uncertainty of the need. If the margin was learned, it covers the uncertainty already, which then does not
// justify fewer instances.
func (m adaptive) acceptableRange(a *Assessment) (minCount, maxCount float64) {
	uncertainty := m.Model.Required(a.Level+2*a.Error, m.Threshold) - m.Model.Required(a.Level, m.Threshold)
	slack := m.Spillover + uncertainty
	shortfall := slack
	if a.MarginLearned {
		shortfall = m.Spillover
	}
	return a.Required - shortfall, a.Required*(1+m.ScaleDownMargin) + slack
}

package decide

import "math"

// adaptive is the decision of the adaptive method (in place of sections 8.2 to 8.5 of the paper): it follows the need
// both ways, unless the present count is good enough. Its forecast has no trend that noise explains.
type adaptive struct{ *Options }

// plan takes nothing away before the load has fallen, and adds a margin, which does not wait for instances to start.
// The part of a trend that cannot be trusted is not in the prospect. Except for the margin, what was learned can only
// raise what is planned for.
func (a adaptive) plan(p Prospect, total float64) plan {
	load := total
	out := plan{basis: FromForecast, margin: a.NoiseMargin * p.Noise}
	raise := func(other float64, basis Basis) {
		if other > load {
			load, out.basis = other, basis
		}
	}
	raise(p.Level, FromPresent)
	raise(p.Straight, FromTrend)
	if p.Learned.Known {
		raise(p.Learned.Planned, p.Learned.Basis)
		if a.Lateness > 0 && !math.IsNaN(p.Learned.Margin) {
			out.margin, out.learned = BoundedMargin(p.Learned.Margin, load), true
		}
	}
	out.load = load + out.margin
	return out
}

// served is the load that the target can carry while that is good enough, so that an HPA without tolerance keeps it;
// otherwise the need.
func (a adaptive) served(l Outlook) float64 {
	least, most := a.counts(&l)
	if least <= l.Target && l.Target <= most && l.Target >= max(1, a.Min) {
		return a.Threshold * float64(l.Target)
	}
	return a.Threshold * l.Required
}

func (a adaptive) need(l Outlook) Need {
	n := Need{Load: l.Damped, Margin: l.Need.Margin, Basis: l.Need.Basis, Each: a.Model.Load(a.Threshold)}
	n.Least, n.Most = a.goodEnough(&l)
	return n
}

func (a adaptive) decide(l Outlook, pending bool) Decision {
	d := Decision{Direction: a.direction(&l), Reason: NoNeed}
	desired := l.Target
	up, down := a.counts(&l)
	switch {
	case up > l.Target:
		desired = clamp(max(up, a.Min), l.Target, a.highest(l.Target))
		d.Reason = AboveThreshold
		if up > desired && desired >= a.Max {
			d.Reason = AtMaximum
		}
	case down >= l.Target && l.Target >= a.Min:
		// neither too few nor too many
	case pending && l.Target >= a.Min:
		d.Reason = ScaleUpPending
	default:
		desired = clamp(down, a.Min, max(l.Target, a.Min))
		d.Reason = Headroom
		if desired > l.Target {
			d.Reason = BelowMinimum
		}
	}
	return d.to(desired, l.Target)
}

func (a adaptive) fewest(l Outlook) int {
	least, _ := a.counts(&l)
	return least
}

// counts returns the counts between which a target stays as it is.
func (a adaptive) counts(l *Outlook) (least, most int) {
	if l.Idle {
		return 0, 0
	}
	fewest, largest := a.goodEnough(l)
	return count(math.Ceil(fewest - RoundingSlack)), count(math.Ceil(largest - RoundingSlack))
}

// goodEnough returns those counts as real numbers. They are apart by the margin, the spillover and the uncertainty of
// the need; fewer instances than are needed are not good enough if the uncertainty is in the margin that was learned.
func (a adaptive) goodEnough(l *Outlook) (least, most float64) {
	unknown := a.Model.Required(l.Level+2*l.Error, a.Threshold) - a.Model.Required(l.Level, a.Threshold)
	slack := a.Spillover + unknown
	short := slack
	if l.Learned {
		short = a.Spillover
	}
	return l.Required - short, l.Required*(1+a.ScaleDownMargin) + slack
}

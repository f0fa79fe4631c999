package pipeline

import "math"

// settle is the decision of the adaptive method (in place of sections 8.2 to 8.5 of the paper): its forecast holds no trend
// that noise explains, so that the need is followed both ways but for the bounds within which a count is good enough.
func (p *Params) settle(f *Forecast, pending bool) Decision {
	d := Decision{Direction: p.direction(f), Wanted: f.Target, Reason: NoNeed}
	up, down := p.goodEnough(f)
	switch {
	case up > f.Target:
		d.Wanted = clamp(up, f.Target, p.highest(f.Target))
		d.Reason = AboveThreshold
		if up > d.Wanted && d.Wanted >= p.Max {
			d.Reason = AtMaximum
		}
	case down >= f.Target && f.Target >= p.Min:
		// neither too few nor too many
	case pending:
		d.Reason = ScaleUpPending
	default:
		d.Wanted = clamp(down, p.Min, max(f.Target, p.Min))
		d.Reason = Headroom
		if d.Wanted > f.Target {
			d.Reason = BelowMinimum
		}
	}
	d.Action = actionOf(d.Wanted, f.Target)
	return d
}

// goodEnough returns the counts between which a target stays as it is. They are apart by the margin, the spillover and what
// the need is not known by.
func (p *Params) goodEnough(f *Forecast) (least, most int) {
	unknown := p.Model.Required(f.Level+2*f.Error, p.Threshold) - p.Model.Required(f.Level, p.Threshold)
	slack := p.Spillover + unknown
	least = count(math.Ceil(f.Required - slack - roundingSlack))
	most = count(math.Ceil(f.Required*(1+p.ScaleDownMargin) + slack - roundingSlack))
	return least, most
}

// steady is S_H of the adaptive method: what the target is good for while that is good enough, so that an HPA without
// tolerance holds as well, else the need.
func (p *Params) steady(f *Forecast) float64 {
	least, most := p.goodEnough(f)
	if least <= f.Target && f.Target <= most && f.Target >= p.Min {
		return p.Threshold * float64(f.Target)
	}
	return p.Threshold * f.Required
}

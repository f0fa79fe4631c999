package pipeline

// Need is how a forecast came to the number of instances of its decision, for readers who check it.
type Need struct {
	Load   float64 // what instances are needed for, as an aggregate
	Margin float64 // the part of Load that was added for errors and lateness
	Basis  Basis   // what the rest of Load is
	Each   float64 // g(τ), what one instance holds at the threshold
	Least  float64 // fewer instances than this are too few
	Most   float64 // more instances than this, rounded up, are too many
}

// Basis is where the load that instances are needed for comes from: the highest of several loads.
type Basis uint8

// The bases there are.
const (
	FromForecast Basis = iota // Forecast.Total
	FromPresent               // Forecast.Level
	FromRecent                // the mean of the last half minute
	FromTrend                 // the straight line through the newest loads
	FromJump                  // a jump that recurs
	FromDamped                // Forecast.Total, with its rise discounted by the risk of acting on it
)

// Required returns how many instances the load needs, as a real number.
func (n Need) Required() float64 { return n.Load / n.Each }

// need returns the load that the decision counts instances for: that of now, unless it rises.
func (h holt) need(f Forecast) Need {
	n := Need{Load: f.Damped, Basis: FromForecast, Each: h.Model.Load(h.Threshold)}
	if f.Damped != f.Total {
		n.Basis = FromDamped
	}
	n.Least = f.Required
	if f.LoadNow < h.Threshold {
		n.Least -= h.Spillover
	}
	n.Most = f.Required
	if !h.rises(&f) {
		n.Load, n.Basis, n.Least = f.Level, FromPresent, h.Model.Required(f.Level, h.Threshold)
		n.Most = h.Model.Required(f.Level, h.Threshold/(1+h.ScaleDownMargin))
	}
	return n
}

func (p adaptive) need(f Forecast) Need {
	n := Need{Load: f.Damped, Margin: f.Need.Margin, Basis: f.Need.Basis, Each: p.Model.Load(p.Threshold)}
	n.Least, n.Most = p.goodEnough(&f)
	return n
}

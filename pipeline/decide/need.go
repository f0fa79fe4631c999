package decide

// Need is the way from a load to the number of instances of a decision, for readers who check it.
type Need struct {
	Load   float64 // that instances are needed for, as an aggregate
	Margin float64 // the part of Load that was added for errors and lateness
	Basis  Basis   // of the rest of Load
	Each   float64 // g(τ), what one instance holds at the threshold
	Least  float64 // fewer instances than this are too few
	Most   float64 // more instances than this, rounded up, are too many
}

// Basis is where the load that instances are needed for comes from: the highest of several loads.
type Basis uint8

// The bases there are.
const (
	FromForecast Basis = iota // the load at the horizon
	FromPresent               // the load now
	FromRecent                // the mean of the last half minute
	FromTrend                 // the straight line through the newest loads
	FromJump                  // a jump that recurs
	FromDamped                // the load at the horizon, its rise discounted by the risk of acting on it
)

// Required returns how many instances the load needs, as a real number.
func (n Need) Required() float64 { return n.Load / n.Each }

// Expectation is what was learned of the load at the horizon.
type Expectation struct {
	Known   bool
	Total   float64 // the load
	Planned float64 // the load to plan for, without a margin
	Basis   Basis   // of Planned
	Margin  float64 // NaN while it is not known
}

// LargestMargin is the largest margin as a share of the load: beyond that, more instances would wait for jumps that
// cannot be known than there are.
const LargestMargin = 1

// BoundedMargin returns how much of a margin is added to a load.
func BoundedMargin(margin, load float64) float64 { return min(margin, LargestMargin*load) }

// plan is the load that instances are needed for.
type plan struct {
	load    float64 // with the margin
	margin  float64
	basis   Basis
	learned bool // the margin was learned
}

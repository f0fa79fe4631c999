package decide

// Need explains how the number of instances follows from a load, for readers who check a decision.
type Need struct {
	Load        float64 // that instances are needed for, as an aggregate
	Margin      float64 // the part of Load that was added for errors and lateness
	Basis       Basis   // of the rest of Load
	PerInstance float64 // g(τ), the load that one instance carries at the threshold
	Min         float64 // fewer instances than this are too few
	Max         float64 // more instances than this, rounded up, are too many
}

// Basis is the source of the planned load, which is the highest of several loads.
type Basis uint8

// The sources of a planned load.
const (
	FromForecast Basis = iota // the load at the horizon
	FromPresent               // the load now
	FromRecent                // the mean of the last 30 seconds
	FromTrend                 // the straight line through the newest loads
	FromJump                  // a recurring jump
	FromDamped                // the load at the horizon, with its rise discounted by the risk of acting on it
)

// Required returns the number of instances that the load needs, as a real number.
func (n Need) Required() float64 { return n.Load / n.PerInstance }

// Expectation is the learned load at the horizon.
type Expectation struct {
	Known   bool
	Total   float64 // the expected load
	Planned float64 // the load to plan for, without a margin
	Basis   Basis   // of Planned
	Margin  float64 // NaN if it is not known
}

// MaxMargin is the largest margin as a share of the load. With more, the number of spare instances, which wait for
// jumps that cannot be forecast, would exceed the number of used ones.
const MaxMargin = 1

// BoundedMargin returns the margin that is added to a load.
func BoundedMargin(margin, load float64) float64 { return min(margin, MaxMargin*load) }

// plan is the load that instances are planned for.
type plan struct {
	load          float64 // including the margin
	margin        float64
	basis         Basis
	marginLearned bool // the margin was learned
}

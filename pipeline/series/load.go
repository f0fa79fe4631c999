package series

// Load is the aggregate at one tick, in units of the model's aggregate.
type Load struct {
	Effective float64 // Ā, the load that is extrapolated
	Raw       float64 // Â, with every instance in full
	Delta     float64 // Δ, the part of the change of Ā since the previous tick that follows from weights only
	Weight    float64 // N^w, the sum of the weights of the instances
	Active    int
	Clipped   bool // adaptive method only: Effective is a lower bound of the load
}

// Mean returns the mean of the effective loads; 0 for an empty list.
func Mean(loads []Load) float64 {
	sum := 0.0
	for _, l := range loads {
		sum += l.Effective
	}
	return sum / max(1, float64(len(loads)))
}

// Loads are the loads of one run, from the first tick at which any instance is known to the newest.
type Loads struct {
	Grid
	Spacing int // number of ticks between readings of the instance that is read least often
	Ticks   []Load
}

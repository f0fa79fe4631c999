package series

// Load is the aggregate at one tick, in units of the model's aggregate.
type Load struct {
	Effective float64 // Ā, what the prediction follows
	Raw       float64 // Â, every instance in full
	Delta     float64 // Δ, the part of the change of Ā since the previous tick that weights alone have made
	Weight    float64 // N^w, the instances counted by weight
	Active    int
	Clipped   bool // with the adaptive method: Effective is a lower bound of the load
}

// Mean returns the mean of what loads have effective; 0 of none.
func Mean(loads []Load) float64 {
	sum := 0.0
	for _, l := range loads {
		sum += l.Effective
	}
	return sum / max(1, float64(len(loads)))
}

// Loads are the loads of one run, one for each tick of the grid from the first at which any instance is known to the
// newest.
type Loads struct {
	Grid
	Spacing int // number of ticks between readings, of the instance that is read least often
	Ticks   []Load
}

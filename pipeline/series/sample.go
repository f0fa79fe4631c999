package series

import "math"

// Never is the time of an event that has not happened.
const Never int64 = math.MinInt64

// Sample is one measurement: the value V read at time T (ms).
type Sample struct {
	T int64
	V float64
}

// Instance is a pod or another instance that carries a share of the load. It is active at t if Start ≤ t < End.
type Instance struct {
	ID         string // unique within an input
	Start, End int64  // ms; End is 0 if the instance has not ended
	Samples    []Sample
}

// Until returns the time at which the instance ends (ms); the largest int64 if it has not ended.
func (i *Instance) Until() int64 {
	if i.End == 0 {
		return math.MaxInt64
	}
	return i.End
}

package hpa

import "math"

// Metric is one of the metrics of an HPA, as it is read once.
type Metric interface {
	// replicas is how many the metric asks for, or why it cannot be told.
	replicas(s *State, t tolerance, f *Flags) (int, error)
}

// tolerance is by how much usage/target may differ from 1 without anything being done.
type tolerance struct{ up, down float64 }

func (t tolerance) covers(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }

// External is a metric of type External (or Object) and one reading of it.
type External struct {
	Total   int64 // the sum of the items that were returned, in milli-units
	Target  int64 // in milli-units
	Average bool  // the target is an AverageValue, not a Value
	Err     error // why there is no reading; nil if there is one
}

func (m External) replicas(s *State, t tolerance, _ *Flags) (int, error) {
	switch {
	case m.Err != nil:
		return 0, m.Err
	case m.Average:
		return m.average(s, t), nil
	default:
		return m.value(s, t)
	}
}

// average spreads the total over the pods that exist, ready or not.
func (m External) average(s *State, t tolerance) int {
	if t.covers(float64(m.Total) / (float64(m.Target) * float64(s.Status))) {
		return s.Status
	}
	return whole(float64(m.Total) / float64(m.Target))
}

// value takes the total for the load of each ready pod.
func (m External) value(s *State, t tolerance) (int, error) {
	ratio := float64(m.Total) / float64(m.Target)
	if t.covers(ratio) {
		return s.Spec, nil
	}
	if len(s.Pods) == 0 {
		return 0, errNoPods
	}
	return whole(ratio * float64(s.ready())), nil
}

// whole rounds up, to what the API has room for.
func whole(replicas float64) int { return int(min(math.Ceil(replicas), math.MaxInt32)) }

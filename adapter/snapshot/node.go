package snapshot

import "time"

// NodeLoads is what is known of the use of all nodes at one moment. It is never changed after it has been published.
type NodeLoads struct {
	At      time.Time           // when it was computed
	Nodes   map[string]NodeLoad // by the name of the Node; one that is absent has never been read, or not for long
	Trouble error               // what keeps the source, or a part of it, from being read, nil: nothing. Nodes has what is known all the same
}

// NodeLoad is the use of one node.
type NodeLoad struct {
	CPU    Use // in cores
	Memory Use // in bytes
}

// Use is what a node uses of one resource, in units of the resource. If there is no forecast of it Sampled is zero, and
// nothing else means anything.
type Use struct {
	Sampled   time.Time     // when the newest sample was taken
	Window    time.Duration // the sample is the mean over this time before it, or from some time within; 0: it is of that moment
	Horizon   time.Duration // how far ahead of Sampled the prediction is
	Now       float64       // the newest sample
	Predicted float64       // at the horizon, not below 0
	Upper     float64       // what the use at the horizon stays below in some 95 of 100 cases; below neither Now nor Predicted
}

// Fresh tells whether there is a forecast whose newest sample is at most as old as limit.
func (u Use) Fresh(now time.Time, limit time.Duration) bool {
	return !u.Sampled.IsZero() && now.Sub(u.Sampled) <= limit
}

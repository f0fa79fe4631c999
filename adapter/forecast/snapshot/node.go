package snapshot

import "time"

// NodeLoads is the use of all nodes at one moment. It never changes after publication.
type NodeLoads struct {
	At    time.Time           // when it was computed
	Nodes map[string]NodeLoad // by the name of the Node; absent: never read, or not for long
	// why the source, or a part of it, cannot be read; nil if it can. Nodes is filled all the same
	SourceErr error
}

// NodeLoad is the use of one node.
type NodeLoad struct {
	CPU    Use // in cores
	Memory Use // in bytes
}

// Use is how much of one resource a node uses, in units of the resource. Without a forecast Sampled
// is zero and the rest is meaningless.
type Use struct {
	Sampled   time.Time     // when the newest sample was taken
	Window    time.Duration // the sample is a mean over this time; 0: it is of one moment
	Horizon   time.Duration // how far ahead of Sampled the prediction is
	Now       float64       // the newest sample
	Predicted float64       // at the horizon, not below 0
	// bound that the use at the horizon stays below in about 95 of 100 cases; at least Now and
	// Predicted
	Upper float64
}

// Fresh returns whether there is a forecast whose newest sample is no older than limit.
func (u Use) Fresh(now time.Time, limit time.Duration) bool {
	return !u.Sampled.IsZero() && !TooOld(u.Sampled, now, limit)
}

package main

import (
	"math"
	"time"
)

// load is how many replicas the demo asks for over time. They climb in a straight line, so that a
// forecast sees them come, and leave at once.
type load struct {
	low, high   int
	climbAt     time.Duration // until then it is low
	topAt       time.Duration // it is high
	interruptAt time.Duration // the cloud announces that it takes an instance back; 0 = never
	leavesAt    time.Duration // it is low again
	longestPlay time.Duration // the play ends whatever is left
}

// defaultLoad needs two nodes at first, and six at the top: at the threshold of 70 % a node has
// room for 5.6 pods.
func defaultLoad() load {
	return load{low: 4, high: 32, climbAt: 3 * time.Second, topAt: 35 * time.Second, leavesAt: 45 * time.Second,
		longestPlay: 110 * time.Second}
}

// withInterruption stays at the top for as long as a replacement takes.
func (l load) withInterruption() load {
	l.interruptAt = l.topAt + 5*time.Second
	l.leavesAt += 20 * time.Second
	l.longestPlay += 20 * time.Second
	return l
}

// replicas are those that are asked for at a time.
func (l load) replicas(at time.Duration) int {
	switch {
	case at < l.climbAt, at >= l.leavesAt:
		return l.low
	case at >= l.topAt:
		return l.high
	default:
		share := float64(at-l.climbAt) / float64(l.topAt-l.climbAt)
		return l.low + int(math.Round(share*float64(l.high-l.low)))
	}
}

// phase names what the load does at a time.
func (l load) phase(at time.Duration) string {
	switch {
	case at < l.climbAt:
		return "steady"
	case at < l.topAt:
		return "demand climbs"
	case at < l.leavesAt:
		return "at the top"
	default:
		return "demand has gone: nodes are drained and removed"
	}
}

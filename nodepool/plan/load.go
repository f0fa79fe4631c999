package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
)

// Pending is the demand of pods that no node takes.
type Pending struct {
	Known bool // false: pods could not be read
	Pods  int  // unschedulable pods that a node of the pool could run
	Due   int  // of them, unschedulable for longer than Pool.PendingFor
	Nodes int  // new nodes that hold the due ones, packed, beyond those that are starting
	Room  int  // of the due ones, those for which existing nodes seem to have room
	// Overlooked are those for which nodes have had room for so long that the scheduler must have a
	// reason of its own: nothing waits for them.
	Overlooked int
	// NoCapacity are, of Pods, those that only instances could run which the cloud had none of when
	// they were tried last, and NoCapacityDue those of Due. Their nodes are NoCapacityNodes of
	// Nodes. Launches for them are tried, and nothing waits for them.
	NoCapacity, NoCapacityDue, NoCapacityNodes int

	// Waiting are, of the due ones, those that wait only until nodes which are being emptied are
	// deleted: no node is launched for them.
	Waiting    int
	Filtered   int // of the due ones, those that existing nodes are refused to, as these are predicted to use too much
	Unhelped   []fleet.Unhelped
	BackingOff int           // of Unhelped, those that the node launched for them did not take
	OldestFor  time.Duration // of the due ones
	// Shapes are, of Nodes, those for which not every offer will do, and Later further ones for
	// pods that are not due yet.
	Shapes, Later []fleet.Shape
	// Replacing are those in place of workers that the cloud takes back or that are repaired, for
	// the pods of these. They are no part of Nodes.
	Replacing []fleet.Shape
}

// any reports whether pods are pending that a removal could hurt: existing, starting or newly
// launched nodes will run them. A negative number is an inconsistency, and counts as some.
func (p Pending) any() bool {
	return p.Pods-p.NoCapacity != p.Overlooked || p.Due-p.NoCapacityDue != p.Overlooked
}

// waiting returns how many pods [Pending.any] is about.
func (p Pending) waiting() int { return p.Pods - p.NoCapacity - p.Overlooked }

// held returns why the due pods need no new node.
func (p Pending) held() string {
	switch {
	case p.Waiting > 0:
		return fmt.Sprintf("%d of them have room once nodes that are being emptied are deleted", p.Waiting)
	case p.Room <= 0:
		return "nodes that are starting will hold them"
	case p.Room >= p.Due:
		return "existing nodes have room for them: the events of the pods show why the scheduler does not use these"
	}
	return fmt.Sprintf("existing nodes have room for %d of them, and nodes that are starting will hold the others", p.Room)
}

// notes returns what else there is to say about the pods, as a continuation of a sentence.
func (p Pending) notes() string {
	out := ""
	if p.Filtered > 0 {
		out += fmt.Sprintf("; the scheduler extender filtered the existing nodes for %d of them, "+
			"as these are predicted to be overloaded", p.Filtered)
	}
	if len(p.Unhelped) > 0 {
		out += fmt.Sprintf("; %s could run on no node of the pool: %s", count(len(p.Unhelped), "pod"), p.examples())
	}
	return out
}

// examples names one unhelped pod for each reason, three at most.
func (p Pending) examples() string {
	var out, reasons []string
	for _, u := range p.Unhelped {
		if len(out) < 3 && !slices.Contains(reasons, u.Reason) {
			out, reasons = append(out, u.Pod+", as "+u.Reason), append(reasons, u.Reason)
		}
	}
	return strings.Join(out, "; ")
}

// Signal is the state of one metric.
type Signal struct {
	Name  string
	Known bool   // false: no forecast; the signal neither raises nor permits a removal
	Err   string // why not
	// Silent names the workers of which nothing is known, "" if there are none. The load is at
	// least what the others carry: the signal may raise the number of workers, and permits no
	// removal.
	Silent string

	Now       float64 // P_now, the mean of the workers
	Predicted float64 // P_H
	Threshold float64 // τ
	Horizon   time.Duration
	// Want is N* of the pipeline, not limited by minimum, maximum or batch. No removal leaves
	// fewer, so a signal that allows one wants no more than Fits.
	Want int

	For   time.Duration // how long Want must have been above the workers before it counts
	Since time.Time     // since when it has been; zero = it is not

	Margin float64 // μ: the load of the workers that stay may be at most Threshold/(1+μ)
	Down   float64 // the load below which a worker may be removed; 0 = Threshold/(1+μ) alone decides
	// Needs is how many workers carry the present and the predicted load without a margin: no fewer
	// stay while others are replaced.
	Needs       int
	Fits        int  // ⌈N(A, τ/(1+μ))⌉ of the present load and of the predicted one, the larger: as many must stay
	CPU         bool // the mean use of CPU that the idle rule compares
	Memory      bool // that of memory
	InformsOnly bool // only the idle rule uses it
	WithPending bool // Want includes what pending pods need
	Level       bool // Want is relative to the existing workers: it does not say how many the load needs
}

// Seasonal is the number of nodes that the same hour of past weeks needed. It can raise the desired
// number and never lowers it. It is not known if the confidence is too low.
type Seasonal struct {
	Known      bool
	Err        string
	Nodes      int
	Confidence float64 // in [0, 1]
}

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
)

// Pending is the demand of pods that fit on no node.
type Pending struct {
	Known bool // false: pods could not be read
	Pods  int  // unschedulable pods that a node of the pool could run
	Due   int  // of them, unschedulable for longer than Pool.PendingFor
	Nodes int  // new nodes that the due ones need, packed, in addition to those that are starting
	Room  int  // due ones for which existing nodes seem to have room
	// Overlooked are those for which nodes have had room for so long that the scheduler must have
	// another reason. Nothing waits for them.
	Overlooked int
	// NoCapacity are those of Pods that only fit on instances which were out of capacity when last
	// tried, NoCapacityDue those of Due. They need NoCapacityNodes of Nodes. Launches for them are
	// tried, and nothing waits for them.
	NoCapacity, NoCapacityDue, NoCapacityNodes int

	// Waiting are due ones that only wait until Nodes which are being drained are deleted. No node is
	// launched for them.
	Waiting    int
	Filtered   int // due ones that the extender keeps off existing nodes, because these are predicted to use too much
	Unhelped   []fleet.Unhelped
	BackingOff int           // of Unhelped, those that did not use the node launched for them
	OldestFor  time.Duration // of the due ones
	// Shapes are those of Nodes that need certain offers, and Later further ones, for pods that are
	// not due yet.
	Shapes, Later []fleet.Shape
	// Replacing are the shapes for pods of workers that are reclaimed or repaired. They are not part
	// of Nodes.
	Replacing []fleet.Shape
}

// any reports whether a removal could hurt pending pods, which will run on existing, starting or
// new nodes. A negative number is an inconsistency and counts as some.
func (p Pending) any() bool {
	return p.Pods-p.NoCapacity != p.Overlooked || p.Due-p.NoCapacityDue != p.Overlooked
}

// waiting returns the number of pods that [Pending.any] is about.
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

// notes returns further information about the pods, as the end of a sentence.
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

// examples returns one unhelped pod for each reason, at most three.
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
	Known bool   // false: no forecast; the signal neither causes launches nor allows removals
	Err   string // why it is not known
	// Silent names the workers without data, "" if there are none. The load is at least what the
	// others carry: the signal may cause launches and allows no removals.
	Silent string

	Now       float64 // P_now, the mean over the workers
	Predicted float64 // P_H
	Threshold float64 // τ
	Horizon   time.Duration
	// Desired is N* of the pipeline, before minimum, maximum and batch. No removal leaves fewer workers,
	// so a signal that allows one has Desired at most Fits.
	Desired int

	For   time.Duration // how long Desired must have been above the workers before it counts
	Since time.Time     // time since which it has been; zero = it is not

	Margin float64 // μ: after a removal the load may be at most Threshold/(1+μ)
	Down   float64 // load below which a worker may be removed; 0 = only Threshold/(1+μ) decides
	// Needs is the number of workers that carry the present and predicted load without a margin. At
	// least as many stay during replacements.
	Needs int
	// ⌈N(A, τ/(1+μ))⌉, the larger of the present and the predicted load: at least as many stay after
	// removals
	Fits        int
	CPU         bool // it is the mean use of CPU that the idle rule compares
	Memory      bool // the same for memory
	InformsOnly bool // only the idle rule uses it
	WithPending bool // Desired includes what pending pods need
	Level       bool // Desired is relative to the existing workers: it does not measure the load
}

// Seasonal is the number of nodes that the same hour of past weeks needed. It can raise the desired
// number and never lowers it. It is unknown if the confidence is too low.
type Seasonal struct {
	Known      bool
	Err        string
	Nodes      int
	Confidence float64 // in [0, 1]
}

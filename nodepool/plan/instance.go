package plan

import (
	"iter"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"
)

// Instance is everything that the pool knows about one instance: the report of the cloud, its
// history, its Node, and its planned fate. A Node of the pool whose instance has never been seen is
// an Instance without an id.
type Instance struct {
	// the last report; Outdated also for reasons of the pool, Zone from its Node if the cloud reports
	// none
	fleet.Instance
	Worker bool // it exists, or must be assumed to: it is one of the pool's workers

	Listed        bool      // the cloud lists it
	StoppedSince  time.Time // first seen stopped; zero = it is not stopped
	Joined        bool      // this process has seen its Node
	Gone          bool      // it no longer exists
	NodelessSince time.Time // time since which it has had no Node, as far as this process knows
	// Unlisted is the time for which the cloud has not listed it although it has a Node or runs, once
	// that is long enough for a finding.
	Unlisted    time.Duration
	UnlistedWhy string // a part of a sentence
	// Ending is the time since its termination was ordered, while it still exists; 0 = it was not
	// ordered.
	Ending time.Duration

	Node Node // without a name if it has none
	// Ambiguous is why it is unclear which Node belongs to it, "" if it is clear. Until then neither
	// is removed.
	Ambiguous string
	// PossibleNode is a Node that may belong to it although their provider ids differ. It is looked up
	// only for an instance that is to be terminated.
	PossibleNode string

	Leaving bool // it is being removed, or the cloud reclaims it
	Ended   bool // it is Leaving, and nothing runs on it any more
	Failed  bool // it did not join in time and does not count, but takes a place until it is gone
	Broken  bool // it has failed because its Node has not been Ready for a long time
	// BrokenFor is how long its Node has not been Ready, once that is longer than a join may take; 0
	// until then. If there are several, such a worker may still count.
	BrokenFor time.Duration
	Unhealthy BadCondition // the reason to repair its Node, if there is one
	Kept      bool         // it has failed, and is kept for inspection until its time is over or its place is needed

	Pods        int     // that a drain would move
	Utilisation float64 // the larger share of its CPU and memory in use
	Known       bool    // Utilisation is known
	Blocked     string  // why it must not be removed, "" if it may: a sentence without a full stop
	// BlockedByPods is set if only its pods, or their PodDisruptionBudgets, block its removal.
	BlockedByPods bool
	// FutileRemoval is why its removal would save nothing, "" if it would: when a node with the same pods was
	// removed, they needed a new node.
	FutileRemoval string
}

// Counts reports whether a worker counts towards the desired number: it works or is expected to.
func (i *Instance) Counts() bool { return !i.Leaving && !i.Failed }

// Ready reports whether its Node is Ready and takes pods.
func (i *Instance) Ready() bool { return i.Node.Ready && !i.Node.Cordoned }

// works reports whether its Node is Ready, cordoned or not.
func (i *Instance) works() bool { return i.Node.Ready }

// cordoned reports whether its Node is Ready and cordoned, by anyone. Such a worker is removed
// before others.
func (i *Instance) cordoned() bool { return i.Node.Ready && i.Node.Cordoned }

// ends reports whether it stops or shuts down, according to the cloud.
func (i *Instance) ends() bool { return i.State == fleet.Leaving }

// name returns the name of its Node, or its id if it has none.
func (i *Instance) name() string {
	if i.Node.Name == "" {
		return i.ID
	}
	return i.Node.Name
}

// neverJoined reports whether its Node has never joined, according to the reason for its
// termination or to its tag.
func (i *Instance) neverJoined(why string) bool {
	if why != "" {
		return why == state.TerminateJoinFailed || why == state.TerminateDeleted
	}
	return i.JoinFailed && !i.Joined
}

// Node is the part of a Node that the plan uses.
type Node struct {
	Name, ProviderID string
	Ready            bool
	Cordoned         bool
	ControlPlane     bool
	Labelled         bool      // with the pool
	Marked           bool      // as being removed
	Mark             string    // id of the action in its mark
	StaleMark        time.Time // first seen with a mark although no action removes it; zero = it is not
	Advised          time.Time // first seen cordoned only because of an advice; zero = it is not
}

// Workers returns the workers of a list of instances.
func Workers(list []Instance) iter.Seq[*Instance] {
	return func(yield func(*Instance) bool) {
		for i := range list {
			if list[i].Worker && !yield(&list[i]) {
				return
			}
		}
	}
}

// Foreign is an instance that carries the tags of the pool but belongs to another controller, such
// as an Auto Scaling group.
type Foreign struct{ InstanceID, Owner string }

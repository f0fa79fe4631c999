package plan

import (
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
)

// Worker is an instance of the pool, or a Node of one.
type Worker struct {
	InstanceID string
	Node       string // name of its Node; "" = none has joined
	fleet.Placement
	Launched time.Time
	Ready    bool // its Node is Ready and takes pods
	Cordoned bool // its Node is Ready and takes no pods, whoever cordoned it: it goes before others
	Leaving  bool // it is being removed, or the cloud takes it away
	Ended    bool // it is Leaving, and nothing runs on it any more
	Failed   bool // it did not join in time and does not count, but takes a place until it is gone
	Broken   bool // it has failed because its Node has not been Ready for long
	// BrokenFor is how long its Node has not been Ready, once that is longer than a join may take;
	// 0 until then. Where several are, such a worker may count all the same.
	BrokenFor time.Duration
	Unhealthy BadCondition // the reason to repair its Node, if there is one
	Kept      bool         // it has failed, and is kept for inspection until its time is over or its place is needed

	Outdated    string  // why it is to be replaced, "" if it is not: a part of a sentence
	OutdatedErr string  // why that is not known, "" if it is
	Pods        int     // that a drain would move
	Utilisation float64 // the larger share of its CPU and memory in use
	Known       bool    // Utilisation is known
	Blocked     string  // why it must not be removed, "" if it may: a sentence without a full stop
	// BlockedByPods says that only its pods, or their PodDisruptionBudgets, block its removal.
	BlockedByPods bool
}

// Counts reports whether the worker counts towards the desired number: it works or is expected to.
func (w Worker) Counts() bool { return !w.Leaving && !w.Failed }

// works reports whether its Node is Ready, cordoned or not.
func (w Worker) works() bool { return w.Ready || w.Cordoned }

// Instance is what is known of an instance of the pool. A Node of the pool whose instance has never
// been seen is an Instance without an id.
type Instance struct {
	ID         string
	ProviderID string
	fleet.Placement
	Action     string    // that launched it; "" = none of this pool
	Listed     bool      // the cloud lists it
	Leaving    bool      // it stops or shuts down
	Stopped    time.Time // since when it has been seen to be stopped; zero = it is not
	JoinFailed bool      // its tag says that its Node did not join
	Joined     bool      // this process has seen its Node
	Gone       bool      // it is known to have gone
	Nodeless   time.Time // since when it has been without a Node, as far as this process knows
	Node       Node      // without a name if it has none
	// Unlisted is how long the cloud has not listed it although it has a Node or runs, once that is
	// a finding.
	Unlisted    time.Duration
	UnlistedWhy string // a part of a sentence
	// Ending is the time since its termination was ordered, unless it is gone; 0 = it was not
	// ordered.
	Ending time.Duration
	// Ambiguous is why it is not certain which Node is its own, "" if it is. Until then nothing of
	// it is destroyed.
	Ambiguous string
	// Disowned is why its tags do not make it the pool's any more, "" if they do: the cloud does
	// not list it.
	Disowned string
	// Stranger is a Node that may be its own although their provider ids differ. It is looked up
	// only for an instance that is to be terminated.
	Stranger string
	// DriftErr is why it is not known whether it is outdated, "" if it is known.
	DriftErr string
}

// Node is the part of a Node that upkeep compares with its instance.
type Node struct {
	Name, ProviderID string
	Ready            bool
	ControlPlane     bool
	Labelled         bool      // with the pool
	Marked           bool      // as being removed
	Mark             string    // the action that it is marked with
	StaleMark        time.Time // since when it has been seen with a mark though nothing removes it; zero = it is not
	Advised          time.Time // since when it has been seen cordoned by an advice alone; zero = it is not
}

// Foreign is an instance that carries the tags of the pool and belongs to another controller, such
// as an Auto Scaling group.
type Foreign struct{ InstanceID, Owner string }

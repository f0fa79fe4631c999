package plan

import (
	"iter"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"
)

// Instance is what the pool knows of one instance: the report of the cloud, its life, its Node, and
// what becomes of it. A Node of the pool whose instance has never been seen is an Instance without
// an id.
type Instance struct {
	fleet.Instance      // the last report; Outdated also for reasons of the pool, Zone by its Node if the cloud gives none
	Worker         bool // it exists, or must be taken to: it is one of the pool's workers

	Listed       bool      // the cloud lists it
	StoppedSince time.Time // it has been seen to be stopped; zero = it is not
	Joined       bool      // this process has seen its Node
	Gone         bool      // it is known to have gone
	Nodeless     time.Time // since when it has been without a Node, as far as this process knows
	// Unlisted is how long the cloud has not listed it although it has a Node or runs, once that is
	// a finding.
	Unlisted    time.Duration
	UnlistedWhy string // a part of a sentence
	// Ending is the time since its termination was ordered, unless it is gone; 0 = it was not
	// ordered.
	Ending time.Duration

	Node Node // without a name if it has none
	// Ambiguous is why it is not certain which Node is its own, "" if it is. Until then nothing of
	// it is destroyed.
	Ambiguous string
	// Stranger is a Node that may be its own although their provider ids differ. It is looked up
	// only for an instance that is to be terminated.
	Stranger string

	Leaving bool // it is being removed, or the cloud takes it away
	Ended   bool // it is Leaving, and nothing runs on it any more
	Failed  bool // it did not join in time and does not count, but takes a place until it is gone
	Broken  bool // it has failed because its Node has not been Ready for long
	// BrokenFor is how long its Node has not been Ready, once that is longer than a join may take;
	// 0 until then. Where several are, such a worker may count all the same.
	BrokenFor time.Duration
	Unhealthy BadCondition // the reason to repair its Node, if there is one
	Kept      bool         // it has failed, and is kept for inspection until its time is over or its place is needed

	Pods        int     // that a drain would move
	Utilisation float64 // the larger share of its CPU and memory in use
	Known       bool    // Utilisation is known
	Blocked     string  // why it must not be removed, "" if it may: a sentence without a full stop
	// BlockedByPods says that only its pods, or their PodDisruptionBudgets, block its removal.
	BlockedByPods bool
	// Undone is why its removal would save nothing, "" if it may: one of a node with pods like its
	// own needed a new node.
	Undone string
}

// Counts reports whether a worker counts towards the desired number: it works or is expected to.
func (i *Instance) Counts() bool { return !i.Leaving && !i.Failed }

// Ready reports whether its Node is Ready and takes pods.
func (i *Instance) Ready() bool { return i.Node.Ready && !i.Node.Cordoned }

// works reports whether its Node is Ready, cordoned or not.
func (i *Instance) works() bool { return i.Node.Ready }

// cordoned reports whether its Node is Ready and takes no pods, whoever cordoned it: it goes before
// others.
func (i *Instance) cordoned() bool { return i.Node.Ready && i.Node.Cordoned }

// ends reports whether the cloud says that it stops or shuts down.
func (i *Instance) ends() bool { return i.State == fleet.Leaving }

// name returns the name of its Node, or its id if it has none.
func (i *Instance) name() string {
	if i.Node.Name == "" {
		return i.ID
	}
	return i.Node.Name
}

// neverJoined reports whether its Node has not joined, by the reason for which it is to be
// terminated or by its tag.
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
	Mark             string    // the action that it is marked with
	StaleMark        time.Time // since when it has been seen with a mark though nothing removes it; zero = it is not
	Advised          time.Time // since when it has been seen cordoned by an advice alone; zero = it is not
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

// Foreign is an instance that carries the tags of the pool and belongs to another controller, such
// as an Auto Scaling group.
type Foreign struct{ InstanceID, Owner string }

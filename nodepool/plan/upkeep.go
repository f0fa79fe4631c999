package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/state"
)

const (
	// OrphanMargin is how much longer than a join an instance may exist without a Node and an action.
	OrphanMargin = 2 * time.Minute
	// StoppedFor is the longest time for which an instance may be stopped. Workers are never
	// restarted.
	StoppedFor = 30 * time.Minute
	// MaxPendingTerminations bounds the instances without a Node, and the stopped ones, that one
	// decision terminates. Each decision checks again whether observations can be trusted.
	MaxPendingTerminations = 2
	// staleFor is the time for which a Node must be seen with the mark of an action that is not open,
	// because the cached view may lag.
	staleFor = 5 * time.Second
	// adviceFor is the time for which a Node stays cordoned because of an advice of the cloud, which
	// may never reclaim it.
	adviceFor = 15 * time.Minute
)

// upkeep decides what is put right apart from the number of workers.
func upkeep(f *facts, d Decision) Upkeep {
	var u Upkeep
	if f.WorkersErr != "" {
		return u
	}
	doubt := Doubt(f.Pool, f.Instances, f.Record.PendingTerminations)
	for _, p := range f.Record.PendingTerminations {
		judgeTermination(f, &u, p, doubt, slices.Contains(d.GiveUp, p.InstanceID))
	}
	terminateOrphans(f, &u, doubt)
	terminateStopped(f, &u)
	for k := range f.Instances {
		if i := &f.Instances[k]; i.Node.Name != "" && !i.Node.ControlPlane && !f.Record.Leaves(i.ID) {
			tidyNode(f, &u, i)
		}
	}
	u.Findings = findings(f, d)
	return u
}

// judgeTermination decides whether a pending termination is forgotten, waits, or is carried out.
func judgeTermination(f *facts, u *Upkeep, p state.PendingTermination, doubt string, givenUp bool) {
	i := f.instances[p.InstanceID]
	if i == nil {
		if slices.ContainsFunc(f.Foreign, func(x Foreign) bool { return x.InstanceID == p.InstanceID }) {
			u.Forget = append(u.Forget, Forget{InstanceID: p.InstanceID}) // it belongs to another controller now
		}
		return
	}
	over, joined := isObsolete(f, p, i)
	switch {
	case over:
		u.Forget = append(u.Forget, Forget{InstanceID: p.InstanceID, Node: i.Node.Name, Joined: joined})
	case !i.Listed, i.ends() && i.StoppedSince.IsZero():
	case i.Ambiguous != "":
		u.problem("instance %s is not terminated: %s", i.ID, i.Ambiguous)
	case p.Reason == state.TerminateStopped:
		u.Terminate = append(u.Terminate, terminationOf(i, p))
	default:
		judgeNodeless(f, u, p, i, doubt, givenUp)
	}
}

// isObsolete reports whether a pending termination is obsolete, and whether that is because the Node
// has joined after all.
func isObsolete(f *facts, p state.PendingTermination, i *Instance) (over, joined bool) {
	switch {
	case !i.Listed:
		return i.Gone || i.Disowned != "", false
	case i.Node.ControlPlane:
		return true, false
	case i.Node.Ready:
		return true, true
	case p.Reason == state.TerminateDeleted && !f.Pool.Deleting:
		return true, false
	case p.Reason == state.TerminateStopped:
		return i.StoppedSince.IsZero() && !i.ends(), false // it was started by other means
	}
	return false, false
}

// terminationOf returns the termination of an instance. Nothing runs on one that is stopped.
func terminationOf(i *Instance, p state.PendingTermination) Terminate {
	return Terminate{
		InstanceID: i.ID, ProviderID: i.ProviderID, Reason: p.Reason, Node: i.Node.Name, Marked: i.Node.Marked,
		Stopped: p.Reason == state.TerminateStopped,
	}
}

// judgeNodeless decides about an instance that has no working Node.
func judgeNodeless(f *facts, u *Upkeep, p state.PendingTermination, i *Instance, doubt string, givenUp bool) {
	if p.Reason == state.TerminateJoinFailed && !i.JoinFailed {
		u.Tag = append(u.Tag, i.ID)
	}
	due := !f.Now.Before(p.Due) || givenUp
	switch {
	case !f.Pool.Deleting && !due:
	case doubt != "":
		u.problem("instance %s has no working node, and is not terminated: %s", i.ID, doubt)
	case i.Node.Name == "" && i.PossibleNode != "":
		u.problem("instance %s has no node and is not terminated, because node %s may be its own: "+
			"its provider id should be %s", i.ID, i.PossibleNode, i.ProviderID)
	default:
		u.Terminate = append(u.Terminate, terminationOf(i, p))
	}
}

// terminateOrphans finds instances that were launched by an action of the pool and have neither a
// Node nor an action any more. Instances that no action launched are left to their owner.
func terminateOrphans(f *facts, u *Upkeep, doubt string) {
	found := 0
	for k := range f.Instances {
		i := &f.Instances[k]
		if !i.Listed || i.Action == "" || i.ends() || i.Node.Name != "" || f.isOpen(i) {
			continue
		}
		age := f.Now.Sub(i.NodelessSince)
		if age <= orphansWait(f.Pool) {
			continue
		}
		if doubt != "" {
			u.problem("instance %s has had no node for %s, and is left alone: %s", i.ID, age.Round(time.Second), doubt)
			return
		}
		if found++; found > MaxPendingTerminations {
			return
		}
		u.New = append(u.New, orphan(f, i, age))
	}
}

// orphan returns the termination of an instance without a Node. If its tag shows that it did not
// join, the journal that recorded it is lost, and it is kept as long as others that did not join.
func orphan(f *facts, i *Instance, age time.Duration) NewTermination {
	p := newTermination(f, i, state.TerminateOrphan, fmt.Sprintf(
		"Instance %s has had no node for %s, and no action waits for it", i.ID, age.Round(time.Second)))
	if i.JoinFailed {
		p.Reason, p.Due = state.TerminateJoinFailed, f.Now.Add(f.Pool.Join.KeepFailedFor)
	}
	return p
}

func newTermination(f *facts, i *Instance, reason, message string) NewTermination {
	return NewTermination{
		PendingTermination: state.PendingTermination{InstanceID: i.ID, Reason: reason, Since: f.Now, Due: f.Now},
		Action:             i.Action, Message: message,
	}
}

// orphansWait returns how long an instance may exist without a Node and an action. In a pool that
// is being deleted it gets no time to join.
func orphansWait(p Pool) time.Duration {
	if p.Deleting {
		return p.VanishGrace
	}
	return p.Join.Timeout + OrphanMargin
}

// terminateStopped finds instances of actions that are stopped permanently. They do not count as
// workers, and keep their disks.
func terminateStopped(f *facts, u *Upkeep) {
	found := 0
	for k := range f.Instances {
		i := &f.Instances[k]
		if !i.Listed || i.StoppedSince.IsZero() || i.Action == "" || f.isOpen(i) {
			continue
		}
		stopped := f.Now.Sub(i.StoppedSince)
		if stopped < StoppedFor && !f.Pool.Deleting {
			continue
		}
		if found++; found > MaxPendingTerminations {
			return
		}
		u.New = append(u.New, newTermination(f, i, state.TerminateStopped, fmt.Sprintf(
			"Instance %s has been stopped for %s, and workers are never restarted", i.ID, stopped.Round(time.Second))))
	}
}

// tidyNode labels the Node of a worker, deletes the Node of an instance that no longer exists, and
// uncordons a Node with the mark of an action that is over.
func tidyNode(f *facts, u *Upkeep, i *Instance) {
	n := &i.Node
	stays := i.Listed && !i.ends()
	switch {
	case stays && n.Marked && f.Record.PendingTermination(i.ID) == nil:
		if hasLasted(f, n.StaleMark, staleFor) {
			u.restore(i, n.Mark, "action %s is over", n.Mark)
		}
	case stays && hasLasted(f, n.Advised, adviceFor):
		u.restore(i, "", "the cloud has not reclaimed %s in %s", i.ID, adviceFor)
	case !n.Ready && i.Gone && i.Ambiguous == "":
		u.Delete = append(u.Delete, Delete{n.Name, n.ProviderID, i.ID})
	case !n.Labelled:
		u.Label = append(u.Label, n.Name)
	}
}

// hasLasted reports whether a time is known and at least d ago.
func hasLasted(f *facts, since time.Time, d time.Duration) bool {
	return !since.IsZero() && f.Now.Sub(since) >= d
}

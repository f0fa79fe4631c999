package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
)

const (
	// OrphanMargin is how much longer than a join may take an instance may be without a Node and an action.
	OrphanMargin = 2 * time.Minute
	// StoppedFor is how long an instance may be stopped, as workers are never started again.
	StoppedFor = 30 * time.Minute
	// MaxPendingTerminations is how many instances without a Node, and how many stopped ones, a decision has terminated at most. Each decision
	// judges anew whether what is seen can be trusted.
	MaxPendingTerminations = 2
	// staleFor is how long a Node must be seen to carry the mark of no open action: what is seen of it may be a little old.
	staleFor = 5 * time.Second
	// adviceFor is how long a node stays cordoned because the cloud advised to leave it, which it may never insist on.
	adviceFor = 15 * time.Minute
	// endsWithin is how long an instance may take to end. Most take less than a minute, bare metal
	// a quarter of an hour.
	endsWithin = 20 * time.Minute
)

// Why an instance is to be terminated.
const (
	TerminateOrphan     = "Orphan"
	TerminateJoinFailed = "JoinFailed"
	TerminateStopped    = "Stopped"
	TerminateDeleted    = "Deleted" // its pool is, and its node has not joined yet
)

// Instance is what is seen of an instance of the pool. A Node of the pool whose instance has never been seen is one without
// an id.
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
	Nodeless   time.Time // since when it has been without a Node, for all that this process knows
	Node       Node      // without a name if it has none
	// Unlisted is how long the cloud has not listed it although it has a Node or runs, once that is
	// a finding.
	Unlisted    time.Duration
	UnlistedWhy string // a part of a sentence
	// Ending is the time since it was told to end, unless it is gone; 0 = it was not.
	Ending time.Duration
	// Ambiguous is why it is not certain which Node is its own, "" if it is. While it is not,
	// nothing of it is destroyed.
	Ambiguous string
	// Disowned is why its tags do not make it the pool's any more, "" if they do: the cloud does not list it.
	Disowned string
	// Stranger is a Node that may be its own although their provider ids differ. It is looked for only if the instance is to be terminated.
	Stranger string
	// DriftErr is why it is not known whether it is outdated, "" if it is known.
	DriftErr string
}

// Foreign is an instance that carries the tags of the pool and belongs to another controller, such
// as an Auto Scaling group.
type Foreign struct{ InstanceID, Owner string }

// Node is what upkeep looks at on the Node of an instance.
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

// PendingTermination is an instance to be terminated once Due has come, unless its Node has joined by then.
type PendingTermination struct {
	InstanceID, Reason string
	Due                time.Time
	Action, Message    string // of a new one: the action that launched it, and why for people
}

// Upkeep is what is tidied up beside the number of workers. It is empty while the cloud or the cluster are not known.
type Upkeep struct {
	New       []PendingTermination // to be written down before anything is done about them
	Tag       []string             // instances, as ones that did not join
	Terminate []Terminate          // pending ones whose time has come
	Forget    []Forget             // pending ones that need not be terminated any more
	Restore   []Restore            // nodes that take pods again
	Delete    []Delete             // Nodes of instances that have gone
	Label     []string             // Nodes, with the pool
	Findings  []Finding            // for people, as long as each holds
	Problems  []string             // why something is not done that should be
}

// Terminate is an instance whose time has come.
type Terminate struct {
	InstanceID, ProviderID, Reason string
	Node                           string // that must be empty first; "" = it has none, which must be looked at once more
	Marked                         bool   // the mark of the removal is seen on the Node
	Stopped                        bool   // nothing runs on it
}

// Forget is an instance that stays after all, or that has gone.
type Forget struct {
	InstanceID, Node string
	Joined           bool
}

// Restore is a node that takes pods again.
type Restore struct{ Node, InstanceID, Action, Message string }

// Delete is the Node of an instance that has gone.
type Delete struct{ Node, ProviderID, InstanceID string }

// Finding is something for people to look at.
type Finding struct {
	Kind             FindingKind
	Node, InstanceID string
	Message          string // a sentence without a full stop
}

// FindingKind is what kind of finding it is.
type FindingKind string

// The kinds of findings.
const (
	Broken        FindingKind = "Broken"        // the Node of a worker has not been Ready for long
	RepairHeld    FindingKind = "RepairHeld"    // no unhealthy worker is repaired
	Unlisted      FindingKind = "Unlisted"      // the cloud does not list an instance that has a Node or runs
	Ambiguous     FindingKind = "Ambiguous"     // it is not certain which Node is the one of an instance
	NotOwned      FindingKind = "NotOwned"      // an instance with the pool's tags belongs to another controller
	StillEnding   FindingKind = "StillEnding"   // an instance that was told to end long ago is not gone
	DriftUnknown  FindingKind = "DriftUnknown"  // the cloud does not say what new instances are
	OffersUnknown FindingKind = "OffersUnknown" // the cloud does not say what can be launched
	PricesUnknown FindingKind = "PricesUnknown" // the cloud does not say what instances cost
)

// upkeep decides what is tidied up.
func (v *view) upkeep(giveUp []string) Upkeep {
	var u Upkeep
	if v.WorkersErr != "" {
		return u
	}
	doubt := Doubt(v.Pool, v.Instances, v.State.PendingTerminations)
	for _, c := range v.State.PendingTerminations {
		v.judge(&u, c, doubt, giveUp)
	}
	v.terminateOrphans(&u, doubt)
	v.terminateStopped(&u)
	for i := range v.Instances {
		v.tidy(&u, &v.Instances[i])
	}
	v.find(&u)
	return u
}

func (v *view) pending(id string) *PendingTermination {
	for i := range v.State.PendingTerminations {
		if c := &v.State.PendingTerminations[i]; id != "" && c.InstanceID == id {
			return c
		}
	}
	return nil
}

// Doubt tells why what is seen of Nodes cannot be trusted, "" if it can. If the Nodes of many instances are missing, as in a
// cluster that was restored from a backup, the instances are there and so are their pods. Instances whose Nodes never joined
// do not count.
func Doubt(p Pool, instances []Instance, pending []PendingTermination) string {
	reasons := map[string]string{}
	for _, c := range pending {
		reasons[c.InstanceID] = c.Reason
	}
	unready, all := 0, 0
	for i := range instances {
		in := &instances[i]
		if !in.Listed || in.Leaving || in.neverJoined(reasons[in.ID]) {
			continue
		}
		all++
		if in.Node.Name == "" || !in.Node.Ready {
			unready++
		}
	}
	if !p.defaulted().Distrusts(unready, all) {
		return ""
	}
	return fmt.Sprintf("%d of %d instances have no node that is ready: what is seen is not to be trusted", unready, all)
}

// neverJoined tells whether the reason for which an instance is to be terminated, or its tag, says that its Node has not joined.
func (i *Instance) neverJoined(why string) bool {
	if why != "" {
		return why == TerminateJoinFailed || why == TerminateDeleted
	}
	return i.JoinFailed && !i.Joined
}

// judge decides about one pending termination: it is forgotten, waits, or is carried out.
func (v *view) judge(u *Upkeep, c PendingTermination, doubt string, giveUp []string) {
	i := v.seen[c.InstanceID]
	if i == nil {
		return
	}
	over, joined := v.isOver(c, i)
	switch {
	case over:
		u.Forget = append(u.Forget, Forget{InstanceID: c.InstanceID, Node: i.Node.Name, Joined: joined})
	case !i.Listed, i.Leaving && i.Stopped.IsZero():
	case i.Ambiguous != "":
		u.problem("instance %s is not terminated: %s", i.ID, i.Ambiguous)
	case c.Reason == TerminateStopped:
		u.Terminate = append(u.Terminate, i.terminate(c))
	default:
		v.judgeNodeless(u, c, i, doubt, slices.Contains(giveUp, c.InstanceID))
	}
}

// isOver reports whether a pending termination is to be forgotten, and whether that is because the
// Node has joined after all.
func (v *view) isOver(c PendingTermination, i *Instance) (over, joined bool) {
	switch {
	case !i.Listed:
		return i.Gone || i.Disowned != "", false
	case i.Node.ControlPlane:
		return true, false
	case i.Node.Ready:
		return true, true
	case c.Reason == TerminateDeleted && !v.Pool.Deleting:
		return true, false
	case c.Reason == TerminateStopped:
		return i.Stopped.IsZero() && !i.Leaving, false // somebody has started it
	}
	return false, false
}

// terminate returns the termination of an instance. Nothing runs on one that is stopped.
func (i *Instance) terminate(c PendingTermination) Terminate {
	return Terminate{
		InstanceID: i.ID, ProviderID: i.ProviderID, Reason: c.Reason, Node: i.Node.Name, Marked: i.Node.Marked,
		Stopped: c.Reason == TerminateStopped,
	}
}

// judgeNodeless decides about an instance that has no Node which works.
func (v *view) judgeNodeless(u *Upkeep, c PendingTermination, i *Instance, doubt string, givenUp bool) {
	if c.Reason == TerminateJoinFailed && !i.JoinFailed {
		u.Tag = append(u.Tag, i.ID)
	}
	due := !v.Now.Before(c.Due) || givenUp
	switch {
	case !v.Pool.Deleting && (!due || c.Reason == TerminateJoinFailed && v.Pool.Join.KeepFailed):
	case doubt != "":
		u.problem("instance %s has no node that works, and is not terminated: %s", i.ID, doubt)
	case i.Node.Name == "" && i.Stranger != "":
		u.problem("instance %s has no node and is not terminated, as node %s may be its: want the provider id %s",
			i.ID, i.Stranger, i.ProviderID)
	default:
		u.Terminate = append(u.Terminate, i.terminate(c))
	}
}

func (u *Upkeep) problem(format string, args ...any) {
	u.Problems = append(u.Problems, fmt.Sprintf(format, args...))
}

// terminateOrphans finds instances that an action of the pool has launched and that have neither a Node nor an action any more.
// Instances that no action has launched are left to whoever did.
func (v *view) terminateOrphans(u *Upkeep, doubt string) {
	found := 0
	for k := range v.Instances {
		i := &v.Instances[k]
		if !i.Listed || i.Action == "" || i.Leaving || i.Node.Name != "" || v.spokenFor(i) {
			continue
		}
		age := v.Now.Sub(i.Nodeless)
		if age <= v.orphansWait() {
			continue
		}
		if doubt != "" {
			u.problem("instance %s has had no node for %s, and is left alone: %s", i.ID, age.Round(time.Second), doubt)
			return
		}
		if found++; found > MaxPendingTerminations {
			return
		}
		u.New = append(u.New, v.orphan(i, age))
	}
}

// orphan has an instance terminated. One that has not joined for all that its tag says, in a journal that is not there any more, is
// kept as long as others that have not.
func (v *view) orphan(i *Instance, age time.Duration) PendingTermination {
	c := PendingTermination{
		InstanceID: i.ID, Reason: TerminateOrphan, Due: v.Now, Action: i.Action,
		Message: fmt.Sprintf("Instance %s has had no node for %s, and no action is waiting for it", i.ID, age.Round(time.Second)),
	}
	if i.JoinFailed {
		c.Reason, c.Due = TerminateJoinFailed, v.Now.Add(v.Pool.Join.KeepFailedFor)
	}
	return c
}

// orphansWait is for how long an instance may be without a Node and an action. In a pool that is being deleted it need not
// have the time to join.
func (v *view) orphansWait() time.Duration {
	if v.Pool.Deleting {
		return v.Pool.VanishGrace
	}
	return v.Pool.Join.Timeout + OrphanMargin
}

// terminateStopped finds instances of actions that are stopped for good. They do not count as workers, and keep their disks.
func (v *view) terminateStopped(u *Upkeep) {
	found := 0
	for k := range v.Instances {
		i := &v.Instances[k]
		if !i.Listed || i.Stopped.IsZero() || i.Action == "" || v.spokenFor(i) {
			continue
		}
		stopped := v.Now.Sub(i.Stopped)
		kept := stopped < StoppedFor || i.JoinFailed && v.Pool.Join.KeepFailed
		if kept && !v.Pool.Deleting {
			continue
		}
		if found++; found > MaxPendingTerminations {
			return
		}
		u.New = append(u.New, PendingTermination{
			InstanceID: i.ID, Reason: TerminateStopped, Due: v.Now, Action: i.Action,
			Message: fmt.Sprintf("Instance %s has been stopped for %s, and no worker is started again", i.ID, stopped.Round(time.Second)),
		})
	}
}

// spokenFor tells whether the journal knows what becomes of an instance.
func (v *view) spokenFor(i *Instance) bool {
	return v.State.ActionID != "" && v.State.ActionID == i.Action || v.removals[i.ID] != nil || v.pending(i.ID) != nil
}

// tidy labels the Node of a worker, deletes the Node of an instance that has gone, and restores a node that carries the mark of an
// action that is over.
func (v *view) tidy(u *Upkeep, i *Instance) {
	n := &i.Node
	stays := i.Listed && !i.Leaving
	switch {
	case n.Name == "" || n.ControlPlane || v.removals[i.ID] != nil:
	case stays && n.Marked && v.pending(i.ID) == nil:
		if !n.StaleMark.IsZero() && v.Now.Sub(n.StaleMark) >= staleFor {
			u.Restore = append(u.Restore, Restore{n.Name, i.ID, n.Mark, fmt.Sprintf("Node %s takes pods again: action %s is over", n.Name, n.Mark)})
		}
	case stays && !n.Advised.IsZero() && v.Now.Sub(n.Advised) >= adviceFor:
		u.Restore = append(u.Restore, Restore{n.Name, i.ID, "", fmt.Sprintf("Node %s takes pods again: the cloud has not taken %s in %s", n.Name, i.ID, adviceFor)})
	case !n.Ready && i.Gone && i.Ambiguous == "":
		u.Delete = append(u.Delete, Delete{n.Name, n.ProviderID, i.ID})
	case !n.Labelled:
		u.Label = append(u.Label, n.Name)
	}
}

// findings returns what only people can mend about an instance.
func (i *Instance) findings() (out []Finding) {
	add := func(kind FindingKind, node, format string, args ...any) {
		out = append(out, Finding{kind, node, i.ID, fmt.Sprintf(format, args...)})
	}
	name := cmp.Or(i.ID, i.ProviderID)
	switch {
	case i.Ambiguous != "":
		add(Ambiguous, i.Node.Name, "%s: neither %s nor its node is removed; delete the Node that runs elsewhere",
			strings.ToUpper(i.Ambiguous[:1])+i.Ambiguous[1:], name)
	case i.Stranger != "":
		add(Ambiguous, i.Stranger, "Node %s may run on %s, which is not terminated: set the provider id of its kubelet to %s",
			i.Stranger, name, i.ProviderID)
	}
	if i.Unlisted > 0 {
		add(Unlisted, i.Node.Name, "The cloud has not listed %s for %s, %s: neither the instance nor its node is removed",
			name, i.Unlisted.Round(time.Second), i.UnlistedWhy)
	}
	if i.Ending >= endsWithin {
		add(StillEnding, i.Node.Name, "Instance %s was told to end %s ago and is not gone: its node stays until it is",
			i.ID, i.Ending.Round(time.Second))
	}
	return out
}

// find finds what only people can mend.
func (v *view) find(u *Upkeep) {
	drift := ""
	for k := range v.Instances {
		i := &v.Instances[k]
		drift = max(drift, i.DriftErr)
		u.Findings = append(u.Findings, i.findings()...)
	}
	for _, f := range v.Foreign {
		u.Findings = append(u.Findings, Finding{NotOwned, "", f.InstanceID, fmt.Sprintf(
			"Instance %s has the tags of the pool and belongs to %s, so the pool ignores it: remove the tags of one of the two",
			f.InstanceID, f.Owner)})
	}
	if drift != "" {
		u.Findings = append(u.Findings, Finding{Kind: DriftUnknown, Message: "It is not known which instances are outdated: " + drift})
	}
	if v.OffersErr != "" {
		u.Findings = append(u.Findings, Finding{Kind: OffersUnknown, Message: "What can be launched is not known: " + v.OffersErr})
	}
	if v.PricesErr != "" {
		u.Findings = append(u.Findings, Finding{Kind: PricesUnknown, Message: "Not all prices are known, and instance types without one come last, smaller ones first: " + v.PricesErr})
	}
	if v.Pool.Deleting {
		return
	}
	if v.repaired.held != "" && !v.Pool.Repair.Disabled {
		u.Findings = append(u.Findings, Finding{Kind: RepairHeld, Message: "No unhealthy node is repaired: " + v.repaired.held})
	}
	for _, w := range v.Workers {
		if w.BrokenFor == 0 || v.pending(w.InstanceID) != nil || v.isRepaired(w) {
			continue
		}
		instead := "another may take its place"
		if !w.Failed {
			instead = "none takes its place, as there are several"
		}
		u.Findings = append(u.Findings, Finding{Broken, w.Node, w.InstanceID, fmt.Sprintf(
			"Node %s has not been Ready for %s, and %s: %s", w.Node, w.BrokenFor.Round(time.Second), instead, v.prognosis(w))})
	}
}

package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"

	"github.com/foresail/foresail/internal/keepalive"
)

// Decision is what a pool does next, with its reasons: logs, events, metrics, status and `explain`
// all report it.
type Decision struct {
	At              time.Time
	Step            Step
	Workers         int // that count, without those that the cloud takes back
	Want            int // desired next, after minimum, maximum and batch; of a step that is held back, its goal
	Recommended     int // the largest recommendation that counts, before them
	Reason          Reason
	Message         string           // one sentence that says why, with its numbers
	Recommendations []Recommendation // the largest first
	Refused         []Refusal

	Placements []fleet.Placement // of a ScaleUp, one for each node to launch, in order
	Pinned     int               // of Placements, the first ones, which pending pods need to be what they are
	// Alternatives are, for each of Placements, the instance types of which the cloud may launch
	// any instead of the chosen one, cheapest first, at most [MaxAlternatives]. Replacements of
	// outdated workers have none, as the places of their pods were checked on just that type.
	Alternatives [][]string
	// GiveUp are instances that did not join and were kept for inspection, whose place is needed:
	// they are terminated.
	GiveUp     []string
	Urgent     bool              // of a ScaleUp: it waits neither for cooldowns nor for an open scale-down
	Targets    []Target          // of a ScaleDown, in order
	Candidates []Target          // removed next if the pool stays as it is, in order, at most [MaxCandidates]
	IdleSince  time.Time         // to be remembered
	SpareSince time.Time         // to be remembered
	Demand     keepalive.History // to be remembered
	Replacing  int               // to be remembered, with the action that begins
	Rollout    Rollout

	Repairs       []NodeRepair    // of workers whose Nodes have been unhealthy for long
	RepairHeld    string          // why none is repaired though some should be, "" if nothing blocks it
	Interruptions []Interruption  // that messages of the cloud report
	Advice        []Advice        // of the cloud, to leave an instance
	Deferred      []string        // instances whose messages must wait
	Cooling       []fleet.Cooling // that follow from the interruptions
	Substitutes   []Substitute    // for nodes of the open scale-up that cannot be launched
	Replacements  []Replacement   // in the open scale-up, for instances that the cloud takes back
	Upkeep        Upkeep
	LetGo         bool // nothing is left of the pool that is being deleted: its object may go
}

// hold makes a decision one to do nothing, and gives it its reason.
func (d Decision) hold(reason Reason, format string, args ...any) Decision {
	d.Step, d.Reason = Hold, reason
	d.Message = fmt.Sprintf("No change to %s: ", count(d.Workers, "worker")) + fmt.Sprintf(format, args...)
	return d
}

// holdBack holds because every worker was refused.
func (d Decision) holdBack(why string) Decision {
	first := d.Refused[0]
	return d.hold(NoRemovableNode, "%s, but none may go, such as %s: %s", why, first.Worker, first.Reason)
}

// refuse adds refusals of workers that have none yet.
func (d Decision) refuse(more []Refusal) Decision {
	for _, r := range more {
		if !slices.ContainsFunc(d.Refused, func(other Refusal) bool { return other.Worker == r.Worker }) {
			d.Refused = append(d.Refused, r)
		}
	}
	return d
}

// Step is the kind of a decision.
type Step string

// The steps.
const (
	Hold      Step = "Hold"
	ScaleUp   Step = "ScaleUp"
	ScaleDown Step = "ScaleDown"
)

// Recommendation is the number of nodes that one source recommends.
type Recommendation struct {
	Signal string // name of a signal, "pending", "seasonal", "minimum", "returning"
	Nodes  int
	Known  bool
	Reason string
}

// Refusal says why a worker was not chosen for removal.
type Refusal struct {
	Worker, Reason string
	Homeless       bool // its pods would have no other node, even if no other worker went
}

// Target is a worker to be removed.
type Target struct{ InstanceID, Node, Zone string }

func targetOf(w *Instance) Target { return Target{InstanceID: w.ID, Node: w.Node.Name, Zone: w.Zone} }

// Rollout is the progress of the replacement of outdated workers.
type Rollout struct {
	Outdated int    // workers that are to be replaced, including those being drained or terminated
	Unknown  int    // workers of which it is not known whether they are to be
	Message  string // what is done about them, or why nothing is; "" = there are none
}

// Interruption is an instance that the cloud takes back, to be written down before anything is done
// about it.
type Interruption struct {
	InstanceID, ProviderID string
	Zone, Node             string
	Deadline               time.Time
	Replaced               bool // nothing is launched in its place, as it was being removed anyway
	Message                string
}

// Advice is an instance that the cloud advises to leave.
type Advice struct{ InstanceID, Node string }

// NodeRepair is a worker that is to be drained and terminated because its Node is unhealthy, to be
// written down before anything is done.
type NodeRepair struct {
	InstanceID, ProviderID string
	Zone, Node             string
	Replaced               bool // nothing is launched in its place: it did not count any more
	Message                string
}

// Substitute is a node in the place of a slot that was lost.
type Substitute struct {
	Slot int // whose place it takes
	fleet.Placement
	Alternatives []string // see [Decision]
}

// Replacement is a node in the place of an instance that the cloud takes back.
type Replacement struct {
	InstanceID string
	fleet.Placement
	Alternatives []string // see [Decision]
}

// Upkeep is everything that is put right apart from the number of workers. It is empty while the
// cloud or the cluster are not known.
type Upkeep struct {
	New       []NewTermination // to be written down before anything is done about them
	Tag       []string         // instances, as ones that did not join
	Terminate []Terminate      // pending ones that are due
	Forget    []Forget         // pending ones that need not be terminated any more
	Restore   []Restore        // nodes that take pods again
	Delete    []Delete         // Nodes of instances that have gone
	Label     []string         // Nodes, with the pool
	Findings  []Finding        // for people, as long as each holds
	Problems  []string         // why something is not done that should be
}

func (u *Upkeep) problem(format string, args ...any) {
	u.Problems = append(u.Problems, fmt.Sprintf(format, args...))
}

// restore lets the Node of an instance take pods again.
func (u *Upkeep) restore(i *Instance, action, format string, args ...any) {
	message := fmt.Sprintf("Node %s takes pods again: ", i.Node.Name) + fmt.Sprintf(format, args...)
	u.Restore = append(u.Restore, Restore{i.Node.Name, i.ID, action, message})
}

// NewTermination is an instance to be terminated from now on.
type NewTermination struct {
	state.PendingTermination
	Action  string // that launched it
	Message string // why, for people
}

// Terminate is an instance whose termination is due.
type Terminate struct {
	InstanceID, ProviderID, Reason string
	Node                           string // that must be empty first; "" = it has none, which must be checked again
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

package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"

	"github.com/foresail/foresail/internal/keepalive"
)

// Decision is the next step of a pool with its reasons. Logs, events, metrics, status and `explain`
// report it.
type Decision struct {
	At              time.Time
	Step            Step
	Workers         int // that count, without those that the cloud reclaims
	Desired         int // next number of workers, after minimum, maximum and batch; of a step that is held back, its goal
	Recommended     int // the largest recommendation that counts, before these limits
	Reason          Reason
	Message         string           // one sentence with the reason and its numbers
	Recommendations []Recommendation // the largest first
	Refused         []Refusal

	Placements []fleet.Placement // of a ScaleUp, one for each node to launch, in order
	Pinned     int               // the first ones of Placements, whose shape pending pods require
	// Alternatives are, for each of Placements, the instance types that the cloud may launch instead
	// of the chosen one, cheapest first, at most [MaxAlternatives]. Replacements of outdated workers
	// have none, because their pods were checked against the chosen type only.
	Alternatives [][]string
	// GiveUp are instances that did not join and were kept for inspection. They are terminated because
	// their place is needed.
	GiveUp               []string
	Urgent               bool              // of a ScaleUp: it ignores cooldowns and an open scale-down
	Targets              []Target          // of a ScaleDown, in order
	Candidates           []Target          // removed next if the load stays as it is, in order, at most [MaxCandidates]
	IdleSince            time.Time         // to be recorded
	SpareSince           time.Time         // to be recorded
	Demand               keepalive.History // to be recorded
	WorkersBeforeRollout int               // to be recorded, with the action that begins
	Rollout              Rollout

	Repairs          []NodeRepair    // workers whose Nodes have been unhealthy for too long
	RepairHeld       string          // why no worker is repaired though some should be, "" if nothing blocks it
	Interruptions    []Interruption  // from messages of the cloud
	Advice           []Advice        // from messages of the cloud: leave an instance
	Deferred         []string        // instances whose messages are kept for later
	Cooling          []fleet.Cooling // that follow from the interruptions
	Substitutes      []Substitute    // for nodes of the open scale-up that cannot be launched
	Replacements     []Replacement   // for instances that the cloud reclaims, in the open scale-up
	Upkeep           Upkeep
	ReleaseFinalizer bool // nothing is left of a pool that is being deleted
}

// hold turns the decision into one to do nothing, and sets the reason.
func (d Decision) hold(reason Reason, format string, args ...any) Decision {
	d.Step, d.Reason = Hold, reason
	d.Message = fmt.Sprintf("No change to %s: ", count(d.Workers, "worker")) + fmt.Sprintf(format, args...)
	return d
}

// holdAllRefused holds because every worker was refused.
func (d Decision) holdAllRefused(why string) Decision {
	first := d.Refused[0]
	return d.hold(NoRemovableNode, "%s, but no worker can be removed, such as %s: %s", why, first.Worker, first.Reason)
}

// withRefusals adds refusals of workers that have none yet.
func (d Decision) withRefusals(more []Refusal) Decision {
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

// Refusal is a worker that was not chosen for removal, with the reason.
type Refusal struct {
	Worker, Reason string
	Unmovable      bool // its pods would fit on no other node, even if no other worker were removed
}

// Target is a worker to be removed.
type Target struct{ InstanceID, Node, Zone string }

func targetOf(w *Instance) Target { return Target{InstanceID: w.ID, Node: w.Node.Name, Zone: w.Zone} }

// Rollout is the progress of the replacement of outdated workers.
type Rollout struct {
	Outdated int    // workers to be replaced, including those being drained or terminated
	Unknown  int    // workers that may have to be replaced: unknown
	Message  string // current progress, or why there is none; "" = there are no outdated workers
}

// Interruption is an instance that the cloud reclaims. It is recorded before anything else is done.
type Interruption struct {
	InstanceID, ProviderID string
	Zone, Node             string
	Deadline               time.Time
	ReplacementSettled     bool // nothing is launched in its place, because it was being removed anyway
	Message                string
}

// Advice is an instance that the cloud advises to leave, such as after a rebalance recommendation.
type Advice struct{ InstanceID, Node string }

// NodeRepair is a worker that is drained and terminated because its Node is unhealthy. It is
// recorded before anything else is done.
type NodeRepair struct {
	InstanceID, ProviderID string
	Zone, Node             string
	ReplacementSettled     bool // nothing is launched in its place, because it no longer counted
	Message                string
}

// Substitute is a node in place of a slot that was lost.
type Substitute struct {
	Slot int // the lost slot
	fleet.Placement
	Alternatives []string // see [Decision]
}

// Replacement is a node in place of an instance that the cloud reclaims.
type Replacement struct {
	InstanceID string
	fleet.Placement
	Alternatives []string // see [Decision]
}

// Upkeep is everything that is put right apart from the number of workers. It is empty while the
// cloud or the cluster is unknown.
type Upkeep struct {
	New       []NewTermination // recorded before anything else is done
	Tag       []string         // instances, as ones that did not join
	Terminate []Terminate      // pending ones that are due
	Forget    []Forget         // pending ones that are obsolete
	Restore   []Restore        // Nodes to uncordon
	Delete    []Delete         // Nodes of instances that no longer exist
	Label     []string         // Nodes, with the pool
	Findings  []Finding        // for people, as long as each holds
	Problems  []string         // why something that should be done is not
}

func (u *Upkeep) problem(format string, args ...any) {
	u.Problems = append(u.Problems, fmt.Sprintf(format, args...))
}

// restore uncordons the Node of an instance.
func (u *Upkeep) restore(i *Instance, action, format string, args ...any) {
	message := fmt.Sprintf("Node %s takes pods again: ", i.Node.Name) + fmt.Sprintf(format, args...)
	u.Restore = append(u.Restore, Restore{i.Node.Name, i.ID, action, message})
}

// NewTermination is an instance that has to be terminated from now on.
type NewTermination struct {
	state.PendingTermination
	Action  string // that launched it
	Message string // why, for people
}

// Terminate is an instance whose termination is due.
type Terminate struct {
	InstanceID, ProviderID, Reason string
	Node                           string // the Node to drain first; "" = there is none, which must be checked again
	Marked                         bool   // the Node carries the mark of the removal
	Stopped                        bool   // nothing runs on it
}

// Forget is a pending termination that is obsolete: the instance stays, or no longer exists.
type Forget struct {
	InstanceID, Node string
	Joined           bool
}

// Restore is a Node to uncordon.
type Restore struct{ Node, InstanceID, Action, Message string }

// Delete is the Node of an instance that no longer exists.
type Delete struct{ Node, ProviderID, InstanceID string }

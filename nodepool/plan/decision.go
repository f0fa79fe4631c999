package plan

import (
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/internal/keepalive"
)

// Decision is what a pool does next, with its reasons: logs, events, metrics, status and `explain` all tell this.
type Decision struct {
	At              time.Time
	Step            Step
	Workers         int // that count, those left out that the cloud takes back
	Want            int // how many are desired next, after minimum, maximum and batch; of a step that is held back, what it aims at
	Recommended     int // the largest vote that is heard, before them
	Reason          Reason
	Message         string           // one sentence that says why, with its numbers
	Recommendations []Recommendation // what each voice asked for, the largest first
	Refused         []Refusal

	Placements []fleet.Placement // of a ScaleUp, one for each node to launch, in order
	Pinned     int               // of Placements, the first ones, which pending pods need to be what they are
	// Alternatives are, for each of Placements, the instance types of which the cloud may launch any in the place of the chosen
	// one, cheapest first, at most [MaxAlternatives]. What is launched in place of outdated workers has none, as it was asked for
	// just that whether their pods could run there.
	Alternatives [][]string
	// GiveUp are instances that did not join and are kept to be looked at, whose place is needed: they are to be terminated.
	GiveUp     []string
	Urgent     bool              // of a ScaleUp: it may not wait for cooldowns, nor for an open scale-down
	Targets    []Target          // of a ScaleDown, in order
	Candidates []Target          // who would be removed next if the pool stays as it is, in order, at most [MaxCandidates]
	IdleSince  time.Time         // to be remembered
	SpareSince time.Time         // to be remembered
	Demand     keepalive.History // to be remembered
	Replacing  int               // as well, with the action that is begun
	Rollout    Rollout

	Repairs       []NodeRepair    // of workers whose Nodes have been unhealthy for long
	RepairHeld    string          // why none is repaired though some should be, "" if nothing speaks against it
	Interruptions []Interruption  // that messages of the cloud report
	Advice        []Advice        // of the cloud, to leave an instance
	Deferred      []string        // instances that messages are about which must wait
	Cooling       []fleet.Cooling // that follow from the interruptions
	Substitutes   []Substitute    // in place of nodes of the open scale-up that cannot be launched
	Replacements  []Replacement   // in the open scale-up, of instances that the cloud takes back
	Upkeep        Upkeep
	LetGo         bool // nothing is left of the pool that is being deleted: its object may go
}

// Rollout is how far the replacement of outdated workers is.
type Rollout struct {
	Outdated int    // workers that are to be replaced, the ones included that are being drained or terminated
	Unknown  int    // workers of which it is not known whether they are to be
	Message  string // what is done about them, or why nothing is; "" = there are none
}

// Step is the kind of a decision.
type Step string

// The steps.
const (
	Hold      Step = "Hold"
	ScaleUp   Step = "ScaleUp"
	ScaleDown Step = "ScaleDown"
)

// Reason says why, as a word that logs, metrics and events share.
type Reason string

// The reasons to launch.
const (
	BelowMinimum  Reason = "BelowMinimum"  // fewer workers than the minimum: past all cooldowns
	PodsPending   Reason = "PodsPending"   // pods that no node takes
	LoadPredicted Reason = "LoadPredicted" // the load of a signal will be above its threshold
	SeasonalFloor Reason = "SeasonalFloor" // past weeks needed more at this hour
	LoadReturns   Reason = "LoadReturns"   // the load is likely to need as many again by the time they are ready
	Interrupted   Reason = "Interrupted"   // the cloud takes an instance back: past all cooldowns
	Unhealthy     Reason = "Unhealthy"     // an unhealthy worker is being removed: past all cooldowns
)

// The reasons to remove.
const (
	PoolIdle      Reason = "PoolIdle"
	Underutilized Reason = "Underutilized" // the pods of the workers have a place on others
	AboveMaximum  Reason = "AboveMaximum"  // the maximum was lowered
	Outdated      Reason = "Outdated"      // it is replaced; the launch of what replaces it has this reason too
	PoolDeleted   Reason = "PoolDeleted"   // the pool is being deleted; also the reason to do nothing once no worker is left
)

// The reasons to do nothing.
const (
	NothingToDo          Reason = "NothingToDo"
	AtMaximum            Reason = "AtMaximum"
	AtMinimum            Reason = "AtMinimum"
	ActionOpen           Reason = "ActionOpen"
	CoolingDown          Reason = "CoolingDown"
	NotSustained         Reason = "NotSustained"         // a trigger has not held for long enough
	SignalsDisagree      Reason = "SignalsDisagree"      // mode All, and not all ask
	InsufficientCapacity Reason = "InsufficientCapacity" // every placement is cooling after errors
	LaunchesUnknown      Reason = "OffersUnknown"        // what can be launched is not known
	BackingOff           Reason = "BackingOff"           // launches keep failing
	WorkersUnknown       Reason = "WorkersUnknown"       // the cloud or the cluster cannot be read
	MetricsUnknown       Reason = "MetricsUnknown"       // a removal would need a signal that has no forecast
	TooManyUnready       Reason = "TooManyUnready"       // too many workers are unready for the world to be trusted
	NoRemovableNode      Reason = "NoRemovableNode"      // every worker is blocked
	BlockedByPendingPods Reason = "BlockedByPendingPods" // a removal while pods are pending
	NotIdle              Reason = "NotIdle"              // or not for long enough
	LoadAfterRemoval     Reason = "LoadAfterRemoval"     // the rest would carry too much
	DisruptionLimited    Reason = "DisruptionLimited"    // a budget allows no removal now
)

// Recommendation is the number of nodes that one voice asks for.
type Recommendation struct {
	Signal string // name of a signal, "pending", "seasonal", "minimum"
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

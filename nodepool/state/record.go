// Package state holds the durable state of a pool of workers: the journal from which any process
// can continue after another one was killed. Stores share one interface and pass the tests of
// statetest.
package state

import (
	"context"
	"errors"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/internal/keepalive"
)

// Store keeps one [Record] for each pool.
type Store interface {
	// Load returns the record of a pool, the zero Record if there is none.
	Load(ctx context.Context, pool string) (Record, error)
	// Save writes the record if the stored one still has r.Version, and returns it with its next
	// version. Otherwise it writes nothing and returns [ErrConflict]. After any other error it is
	// unknown whether the record was written; Load shows it.
	Save(ctx context.Context, pool string, r Record) (Record, error)
}

// ErrConflict means that another writer has written the record.
var ErrConflict = errors.New("the record has been written by another")

// ErrTooLarge means that a record was not written because it exceeds the limit of the store.
// [Record.Slim] makes it smaller.
var ErrTooLarge = errors.New("the record is too large for its store")

// Record is the journal of a pool. Each version of it is written once.
type Record struct {
	Version int64  `json:"version"` // of the stored record; 0 = none is stored
	Owner   string `json:"owner"`   // holder of the lease, one name for each run of a process; "" = none

	Action *Action `json:"action,omitempty"` // the open one

	// Interruptions are instances that the cloud reclaims. They are drained alongside any open action.
	Interruptions []Removal `json:"interruptions,omitempty"`
	// Repairs are workers that are removed because their Nodes are unhealthy, alongside any open
	// action.
	Repairs []Removal `json:"repairs,omitempty"`
	// Endings are removals whose instances are shutting down. Their Nodes are deleted when the
	// instances are gone: until then their pods may run.
	Endings []Removal `json:"endings,omitempty"`
	// PendingTerminations are instances that will be terminated without a drain, because they have no
	// Node.
	PendingTerminations []PendingTermination `json:"pendingTerminations,omitempty"`

	LastUp   time.Time `json:"lastUp,omitzero"` // verified completions
	LastDown time.Time `json:"lastDown,omitzero"`
	// of replacements of outdated workers, which count for neither of the two
	LastSwap time.Time `json:"lastSwap,omitzero"`
	Failures int       `json:"failures,omitempty"` // consecutive scale-ups without a joined node
	FailedAt time.Time `json:"failedAt,omitzero"`
	// of the last scale-up: why part of it was not launched, apart from lack of capacity
	LaunchError string            `json:"launchError,omitempty"`
	IdleSince   time.Time         `json:"idleSince,omitzero"`
	SpareSince  time.Time         `json:"spareSince,omitzero"`
	Demand      keepalive.History `json:"demand,omitzero"`
	DecidedAt   time.Time         `json:"decidedAt,omitzero"` // the last decision before the write
	// number of workers when the replacement of outdated ones began
	WorkersBeforeRollout int                  `json:"workersBeforeRollout,omitempty"`
	Cooling              []fleet.Cooling      `json:"cooling,omitempty"`
	DrainBackoff         map[string]time.Time `json:"drainBackoff,omitempty"` // instance → end of its backoff
	Joins                []Join               `json:"joins,omitempty"`        // the last ones, oldest first

	// LaunchSpec and DrainSpec identify the configuration of failed launches and drains. A change ends
	// their backoff.
	LaunchSpec string `json:"launchSpec,omitempty"`
	DrainSpec  string `json:"drainSpec,omitempty"`

	// Attempts are launches for pods, until a node of theirs has taken one of the pods; see
	// [MaxAttempts].
	Attempts []Attempt `json:"attempts,omitempty"`

	// Saved is the last scale-down to save money, and FutileRemovals the controllers whose pods needed
	// a new node after such a scale-down: their nodes stay for some time. See [MaxOwners].
	Saved          *Saving         `json:"saved,omitempty"`
	FutileRemovals []FutileRemoval `json:"futileRemovals,omitempty"`

	// number of failures of instances that are or were in DrainBackoff
	FailedDrains map[string]int `json:"failedDrains,omitempty"`
}

// MaxAttempts bounds the attempts of a record.
const MaxAttempts = 100

// Attempt is a launch for pods of one kind: of one controller, with the same requirements.
type Attempt struct {
	Kind   string    `json:"kind"`             // identifies the pods
	Owner  string    `json:"owner"`            // their controller, or the pod itself if it has none
	Pod    string    `json:"pod"`              // one of them
	Began  time.Time `json:"began"`            // the launch, or the time at which it was found to have failed
	Joined time.Time `json:"joined,omitzero"`  // time since which a node launched for them is Ready; zero = none has been
	Failed int       `json:"failed,omitempty"` // consecutive launches whose nodes took none of them
	Until  time.Time `json:"until,omitzero"`   // end of the backoff
	Seen   time.Time `json:"seen,omitzero"`    // nodes that joined later may differ from those that took none
	World  string    `json:"world,omitempty"`  // identifies the configuration of new nodes at that time
}

// MaxOwners bounds the controllers of a [Saving], and the FutileRemovals of a record.
const MaxOwners = 100

// Saving is a scale-down to save money.
type Saving struct {
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`
	Owners []string  `json:"owners"` // UIDs of the controllers of the pods on its nodes
}

// FutileRemoval is a controller whose pods needed a new node after a scale-down had evicted some of
// them.
type FutileRemoval struct {
	Owner string    `json:"owner"` // its UID
	Times int       `json:"times"` // consecutive
	Until time.Time `json:"until"` // until then nodes with its pods are not removed to save money
}

// Action is an open scale-up or scale-down.
type Action struct {
	ID      string     `json:"id"`
	Kind    ActionKind `json:"kind"`
	Reason  Reason     `json:"reason"`
	Message string     `json:"message"`
	Started time.Time  `json:"started"`
	Slots   []Slot     `json:"slots,omitempty"`   // of a scale-up
	Targets []Removal  `json:"targets,omitempty"` // of a scale-down
}

// ActionKind is the kind of an open action.
type ActionKind string

// The kinds.
const (
	ActionUp   ActionKind = "ScaleUp"
	ActionDown ActionKind = "ScaleDown"
)

// Reason is the reason of an action, as a word that logs, metrics and events share. Package plan
// defines the reasons.
type Reason string

// PoolDeleted is the reason of an action that removes the nodes of a pool that is being deleted.
const PoolDeleted Reason = "PoolDeleted"

// Slot is one node of a scale-up. Its parameters and token are recorded before it is launched. They
// change in two cases: an instance of an alternative type replaces the type of the slot, and a slot
// whose launch has failed definitively is planned again, with new parameters and a new token. So an
// action never has more slots than it should have nodes.
type Slot struct {
	Number int `json:"number"`
	fleet.Placement
	Alternatives []string `json:"alternatives,omitempty"` // instance types that may be launched instead, until one is
	// of the call that launches it, shared with other slots of the call
	Token      string    `json:"token"`
	Attempt    int       `json:"attempt,omitempty"`  // launches of the slot that failed definitively before this one
	Pinned     bool      `json:"pinned,omitempty"`   // pods require its shape
	Outdated   bool      `json:"outdated,omitempty"` // it replaces an outdated worker
	State      SlotState `json:"state"`
	InstanceID string    `json:"instanceId,omitempty"`
	ProviderID string    `json:"providerId,omitempty"`
	Node       string    `json:"node,omitempty"`
	Requested  time.Time `json:"requested,omitzero"` // when its launch was first tried
	NotBefore  time.Time `json:"notBefore,omitzero"`
	Tries      int       `json:"tries,omitempty"`
	Refused    bool      `json:"refused,omitempty"` // the cloud lacked capacity, quota or addresses
	Lost       bool      `json:"lost,omitempty"`    // it has failed, and its substitute has not been decided yet
	Error      string    `json:"error,omitempty"`
}

// SlotState is the state of a slot.
type SlotState string

// The states of a slot: Planned → Launched → Ready, or Failed from either of the first two.
const (
	SlotPlanned  SlotState = "Planned"
	SlotLaunched SlotState = "Launched"
	SlotReady    SlotState = "Ready"
	SlotFailed   SlotState = "Failed"
)

// Removal is the drain and termination of one node.
type Removal struct {
	InstanceID string       `json:"instanceId"`
	ProviderID string       `json:"providerId,omitempty"` // of its Node, so that no other Node of the same name is deleted
	Node       string       `json:"node"`
	Zone       string       `json:"zone,omitempty"`
	State      RemovalState `json:"state"`
	Since      time.Time    `json:"since,omitzero"`    // time since which it has been in this state
	Began      time.Time    `json:"began,omitzero"`    // start of its drain
	Deadline   time.Time    `json:"deadline,omitzero"` // of an interruption: when the cloud reclaims it
	// of an interruption or a repair: a replacement has been requested, or is not needed
	ReplacementSettled bool   `json:"replacementSettled,omitempty"`
	Evicted            bool   `json:"evicted,omitempty"` // a pod has been evicted
	Error              string `json:"error,omitempty"`
}

// RemovalState is the state of a removal.
type RemovalState string

// The states of a removal, in their order. States before Drained may change to Restoring and then
// Failed: the node takes pods again and nothing was terminated.
const (
	RemovalPlanned    RemovalState = "Planned"
	RemovalTainted    RemovalState = "Tainted"    // new pods are kept off
	RemovalDraining   RemovalState = "Draining"   // cordoned; pods are being evicted
	RemovalDrained    RemovalState = "Drained"    // nothing is left to evict: it may be terminated
	RemovalTerminated RemovalState = "Terminated" // of an ending: its Node is deleted once the instance is gone
	RemovalCompleted  RemovalState = "Completed"
	RemovalRestoring  RemovalState = "Restoring"
	RemovalFailed     RemovalState = "Failed"
)

// PendingTermination is an instance to be terminated at Due, unless its node has joined by then.
type PendingTermination struct {
	InstanceID string    `json:"instanceId"`
	Reason     string    `json:"reason"` // one of those below
	Since      time.Time `json:"since"`
	Due        time.Time `json:"due"`
}

// Reasons for pending terminations.
const (
	TerminateOrphan     = "Orphan"     // no action waits for its Node
	TerminateJoinFailed = "JoinFailed" // its Node has not joined in time
	TerminateStopped    = "Stopped"
	TerminateDeleted    = "Deleted" // its pool is deleted, and its Node has not joined yet
)

// Join is a measured start of a node, for the startup time T_I.
type Join struct {
	Requested time.Time `json:"requested"`
	Ready     time.Time `json:"ready"`
}

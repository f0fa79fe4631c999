// Package state keeps what a pool of workers must not forget: the journal from which any process
// can go on where another was killed. Stores are behind one interface and pass the tests of
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
	// Load returns the record of a pool; that of a pool which has none is the zero Record.
	Load(ctx context.Context, pool string) (Record, error)
	// Save writes the record if the stored one still has r.Version, and returns it with the version that it then has, the
	// next one. Otherwise it writes nothing and returns [ErrConflict]. After any other error it is not known whether the
	// record was written: Load tells.
	Save(ctx context.Context, pool string, r Record) (Record, error)
}

// ErrConflict reports that another writer has written the record.
var ErrConflict = errors.New("the record has been written by another")

// ErrTooLarge reports that a record was not written, as the store takes none of its size. [Record.Slim] makes it
// smaller.
var ErrTooLarge = errors.New("the record is too large for its store")

// Record is the journal of a pool. Each version of it is written once.
type Record struct {
	Version int64  `json:"version"` // of the stored record; 0 = none is stored
	Owner   string `json:"owner"`   // who holds the lease, one name for each run of a process; "" = nobody

	Action *Action `json:"action,omitempty"` // the one that is open

	// Interruptions are instances that the cloud takes back. They are drained beside whatever action is open.
	Interruptions []Removal `json:"interruptions,omitempty"`
	// Repairs are workers that are removed as their Nodes are unhealthy, beside whatever action is open.
	Repairs []Removal `json:"repairs,omitempty"`
	// Endings are removals whose instances have been told to end, or end by themselves. Their Nodes
	// are deleted when the instances are gone: until then their pods may run.
	Endings []Removal `json:"endings,omitempty"`
	// PendingTerminations are instances that will be terminated without a drain, as no node of theirs exists.
	PendingTerminations []PendingTermination `json:"condemned,omitempty"`

	LastUp       time.Time            `json:"lastUp,omitzero"` // verified completions
	LastDown     time.Time            `json:"lastDown,omitzero"`
	LastSwap     time.Time            `json:"lastSwap,omitzero"`  // of those that replace outdated workers, which are none of the two
	Failures     int                  `json:"failures,omitempty"` // scale-ups in a row in which nothing joined
	FailedAt     time.Time            `json:"failedAt,omitzero"`
	LaunchError  string               `json:"launchError,omitempty"` // of the last scale-up: why some of it was not launched, though the cloud has capacity
	IdleSince    time.Time            `json:"idleSince,omitzero"`
	SpareSince   time.Time            `json:"spareSince,omitzero"`
	Demand       keepalive.History    `json:"demand,omitzero"`
	DecidedAt    time.Time            `json:"decidedAt,omitzero"`  // the last decision before the write
	Replacing    int                  `json:"replacing,omitempty"` // how many workers there were when the replacement of outdated ones began
	Cooling      []fleet.Cooling      `json:"cooling,omitempty"`
	DrainBackoff map[string]time.Time `json:"spared,omitempty"` // instance → until when it is not drained again
	Joins        []Join               `json:"joins,omitempty"`  // the last ones, oldest first

	// LaunchSpec and DrainSpec identify what the launches and drains that failed were asked for by: a
	// change ends their back-off.
	LaunchSpec string `json:"launchSpec,omitempty"`
	DrainSpec  string `json:"drainSpec,omitempty"`

	// Attempts are launches for pods, until a node of theirs has taken one; see [MaxAttempts].
	Attempts []Attempt `json:"attempts,omitempty"`

	// Saved is the last scale-down that was to save money, and Undone the controllers whose pods
	// needed a new node after such a scale-down: their nodes stay for a while. See [MaxOwners].
	Saved  *Saving  `json:"saved,omitempty"`
	Undone []Undone `json:"undone,omitempty"`

	FailedDrains map[string]int `json:"failedDrains,omitempty"` // how often, of instances that are or were in DrainBackoff
}

// MaxAttempts is how many attempts a record has at most.
const MaxAttempts = 100

// Attempt is a launch for pods of one kind: of one controller, that ask the same of a node.
type Attempt struct {
	Kind   string    `json:"kind"`             // identifies the pods
	Owner  string    `json:"owner"`            // their controller, or the pod itself if it has none
	Pod    string    `json:"pod"`              // one of them
	Began  time.Time `json:"began"`            // the launch, or the time at which it was found to have failed
	Joined time.Time `json:"joined,omitzero"`  // since when a node launched for them is Ready; zero = none has been
	Failed int       `json:"failed,omitempty"` // launches in a row whose nodes took none of them
	Until  time.Time `json:"until,omitzero"`   // nothing is launched for them
	Seen   time.Time `json:"seen,omitzero"`    // nodes that joined later may be of another kind than those that took none
	World  string    `json:"world,omitempty"`  // identifies what new nodes were then
}

// MaxOwners is how many controllers a [Saving] has at most, and how many of them a record has as undone.
const MaxOwners = 100

// Saving is a scale-down that was to save money.
type Saving struct {
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`
	Owners []string  `json:"owners"` // the UIDs of the controllers of the pods on its nodes
}

// Undone is a controller whose pods needed a new node after a scale-down had evicted some of them.
type Undone struct {
	Owner string    `json:"owner"` // its UID
	Times int       `json:"times"` // in a row
	Until time.Time `json:"until"` // nodes with its pods are not removed to save money
}

// Action is a scale-up or scale-down that is open.
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

// Reason says why an action was begun, as a word that logs, metrics and events share. Package plan has the reasons.
type Reason string

// PoolDeleted is the reason of an action that removes the nodes of a pool that is being deleted.
const PoolDeleted Reason = "PoolDeleted"

// Slot is one node of a scale-up. Its parameters and token are written before it is launched. They change in two
// cases: an instance of an alternative type replaces the type of the slot, and a slot whose launch has failed
// definitively is planned again in its place, with new parameters and a new token. So an action has no more slots than
// it is to have nodes.
type Slot struct {
	Number int `json:"number"`
	fleet.Placement
	Alternatives []string  `json:"alternatives,omitempty"` // instance types that may be launched instead, until one is
	Token        string    `json:"token"`                  // of the call that launches it, which is that of other slots too
	Attempt      int       `json:"attempt,omitempty"`      // launches of the slot that failed definitively before this one
	Pinned       bool      `json:"pinned,omitempty"`       // pods need it to be what it is
	Outdated     bool      `json:"outdated,omitempty"`     // it is launched in place of an outdated worker
	State        SlotState `json:"state"`
	InstanceID   string    `json:"instanceId,omitempty"`
	ProviderID   string    `json:"providerId,omitempty"`
	Node         string    `json:"node,omitempty"`
	Requested    time.Time `json:"requested,omitzero"` // when its launch was first tried
	NotBefore    time.Time `json:"notBefore,omitzero"`
	Tries        int       `json:"tries,omitempty"`
	Refused      bool      `json:"refused,omitempty"` // the cloud had none to give: of capacity, quota or addresses
	Lost         bool      `json:"lost,omitempty"`    // it has failed, and it is not decided yet what takes its place
	Error        string    `json:"error,omitempty"`
}

// SlotState is where a slot is.
type SlotState string

// The states of a slot: Planned → Launched → Ready, or Failed from either of the first two.
const (
	SlotPlanned  SlotState = "Planned"
	SlotLaunched SlotState = "Launched"
	SlotReady    SlotState = "Ready"
	SlotFailed   SlotState = "Failed"
)

// Removal is one node that is drained and terminated.
type Removal struct {
	InstanceID string       `json:"instanceId"`
	ProviderID string       `json:"providerId,omitempty"` // that its Node has, so that no other of its name is deleted
	Node       string       `json:"node"`
	Zone       string       `json:"zone,omitempty"`
	State      RemovalState `json:"state"`
	Since      time.Time    `json:"since,omitzero"`     // it has been in this state
	Began      time.Time    `json:"began,omitzero"`     // its drain
	Deadline   time.Time    `json:"deadline,omitzero"`  // of an interruption: when the cloud takes it
	Replaced   bool         `json:"replaced,omitempty"` // of an interruption or a repair: a replacement has been asked for, or is not needed
	Evicted    bool         `json:"evicted,omitempty"`  // a pod has been evicted
	Error      string       `json:"error,omitempty"`
}

// RemovalState is where a removal is.
type RemovalState string

// The states of a removal, in their order. From those before Drained it may become Restoring and then Failed: the node
// takes pods again and nothing was terminated.
const (
	RemovalPlanned    RemovalState = "Planned"
	RemovalTainted    RemovalState = "Tainted"    // no new pod comes
	RemovalDraining   RemovalState = "Draining"   // cordoned; pods are being evicted
	RemovalDrained    RemovalState = "Drained"    // nothing is left to evict: it may be terminated
	RemovalTerminated RemovalState = "Terminated" // of an ending: its Node is deleted once the instance is gone
	RemovalCompleted  RemovalState = "Completed"
	RemovalRestoring  RemovalState = "Restoring"
	RemovalFailed     RemovalState = "Failed"
)

// PendingTermination is an instance to be terminated once Due has come, unless its node has joined by then.
type PendingTermination struct {
	InstanceID string    `json:"instanceId"`
	Reason     string    `json:"reason"` // one of those below
	Since      time.Time `json:"since"`
	Due        time.Time `json:"due"`
}

// Why an instance is to be terminated.
const (
	TerminateOrphan     = "Orphan"     // no action waits for its Node
	TerminateJoinFailed = "JoinFailed" // its Node has not joined in time
	TerminateStopped    = "Stopped"
	TerminateDeleted    = "Deleted" // its pool is, and its Node has not joined yet
)

// Join is a measured start of a node, for the startup time T_I.
type Join struct {
	Requested time.Time `json:"requested"`
	Ready     time.Time `json:"ready"`
}

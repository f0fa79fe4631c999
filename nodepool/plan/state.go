package plan

import (
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/internal/keepalive"
)

// State is what is remembered of earlier decisions.
type State struct {
	Action              ActionKind // that is open; "" = none
	ActionID            string
	Planned             int               // nodes of an open scale-up that are not launched yet, lost ones included
	PlannedAt           []fleet.Placement // where those will be that are not lost
	Lost                []Lost            // nodes of an open scale-up that cannot be launched as planned
	Room                int               // further nodes that an open scale-up takes; 0 = it takes none
	Removals            []Removal         // that are open, whatever they are for
	PendingTerminations []PendingTermination
	LastUp, LastDown    time.Time         // verified completions; zero = never. A time in the future counts as now
	LastSwap            time.Time         // of those that replace outdated workers: only removals wait after them
	Failures            int               // scale-ups in a row in which nothing joined
	FailedAt            time.Time         // the last of them
	Demand              keepalive.History // of the numbers of workers that were needed
	SpareSince          time.Time         // since when fewer workers would have been enough; zero = they would not
	IdleSince           time.Time         // since when the pool has been idle; zero = it is not
	Replacing           int               // workers when the replacement of outdated ones began; 0 = it has not
	DecidedAt           time.Time         // when the last decision was made; zero = it is not known
	Cooling             []fleet.Cooling
	DrainBackoff        map[string]time.Time // instance → until when it is left alone, after a drain that failed
}

// ActionKind is the kind of an open action.
type ActionKind string

// The kinds.
const (
	ActionUp   ActionKind = "ScaleUp"
	ActionDown ActionKind = "ScaleDown"
)

// Lost is a slot of the open scale-up whose launch has failed for good.
type Lost struct {
	Slot int
	fleet.Placement
	Pinned   bool // pods need it to be what it is
	Outdated bool // it is launched in place of an outdated worker
	Again    bool // the placement was not refused, so that it is launched again
	Attempt  int  // launches of the slot that have failed before
}

// Removal is an instance that is being removed.
type Removal struct {
	InstanceID  string
	Interrupted bool // by the cloud
	Repair      bool // because its Node is unhealthy
	Drained     bool // its Node is empty
}

// PendingTermination is an instance to be terminated once Due has come, unless its Node has joined
// by then.
type PendingTermination struct {
	InstanceID, Reason string
	Due                time.Time
	Action, Message    string // of a new one: the action that launched it, and why for people
}

// Why an instance is to be terminated.
const (
	TerminateOrphan     = "Orphan"
	TerminateJoinFailed = "JoinFailed"
	TerminateStopped    = "Stopped"
	TerminateDeleted    = "Deleted" // its pool is, and its node has not joined yet
)

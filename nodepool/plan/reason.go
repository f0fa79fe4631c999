package plan

import "github.com/foresail/foresail/nodepool/state"

// Reason is a word that logs, metrics and events share.
type Reason = state.Reason

// Reasons to launch.
const (
	BelowMinimum  Reason = "BelowMinimum"  // fewer workers than the minimum: ignores all cooldowns
	PodsPending   Reason = "PodsPending"   // pods fit on no node
	LoadPredicted Reason = "LoadPredicted" // the load of a signal will be above its threshold
	SeasonalFloor Reason = "SeasonalFloor" // past weeks needed more at this hour
	LoadReturns   Reason = "LoadReturns"   // the load is likely to need as many again by the time they are ready
	Interrupted   Reason = "Interrupted"   // the cloud reclaims an instance: ignores all cooldowns
	Unhealthy     Reason = "Unhealthy"     // an unhealthy worker is being removed: ignores all cooldowns
)

// Reasons to remove.
const (
	PoolIdle      Reason = "PoolIdle"
	Underutilized Reason = "Underutilized"   // the pods of the workers fit on others
	AboveMaximum  Reason = "AboveMaximum"    // the maximum was lowered
	Outdated      Reason = "Outdated"        // it is replaced; the launch of its replacement has this reason too
	PoolDeleted          = state.PoolDeleted // the pool is being deleted; also the reason to hold when no worker is left
)

// Reasons to do nothing.
const (
	NothingToDo          Reason = "NothingToDo"
	AtMaximum            Reason = "AtMaximum"
	AtMinimum            Reason = "AtMinimum"
	ActionOpen           Reason = "ActionOpen"
	CoolingDown          Reason = "CoolingDown"
	NotSustained         Reason = "NotSustained"         // a trigger has not held for long enough
	SignalsDisagree      Reason = "SignalsDisagree"      // mode All, and not all recommend more
	InsufficientCapacity Reason = "InsufficientCapacity" // every placement is cooling after errors
	LaunchesUnknown      Reason = "OffersUnknown"        // what can be launched is unknown
	BackingOff           Reason = "BackingOff"           // launches keep failing
	WorkersUnknown       Reason = "WorkersUnknown"       // the cloud or the cluster cannot be read
	MetricsUnknown       Reason = "MetricsUnknown"       // a removal depends on a signal that has no forecast
	TooManyUnready       Reason = "TooManyUnready"       // too many workers are unready for observations to be trusted
	NoRemovableNode      Reason = "NoRemovableNode"      // every worker is blocked
	BlockedByPendingPods Reason = "BlockedByPendingPods" // a removal while pods are pending
	NotIdle              Reason = "NotIdle"              // or not for long enough
	LoadAfterRemoval     Reason = "LoadAfterRemoval"     // the remaining workers would carry too much
	DisruptionLimited    Reason = "DisruptionLimited"    // a budget allows no removal now
)

// MustGo reports whether workers that are removed for a reason have to go, rather than to save
// money. Their pods may wait until the nodes are deleted, and do not block the removal forever if
// the pool has [Pool.Force].
func MustGo(r Reason) bool { return r != PoolIdle && r != Underutilized }

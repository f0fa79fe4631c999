package plan

import "github.com/foresail/foresail/nodepool/state"

// Reason says why, as a word that logs, metrics and events share.
type Reason = state.Reason

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
	Underutilized Reason = "Underutilized"   // the pods of the workers have a place on others
	AboveMaximum  Reason = "AboveMaximum"    // the maximum was lowered
	Outdated      Reason = "Outdated"        // it is replaced; the launch of its replacement has this reason too
	PoolDeleted          = state.PoolDeleted // the pool is being deleted; also the reason to hold once no worker is left
)

// The reasons to do nothing.
const (
	NothingToDo          Reason = "NothingToDo"
	AtMaximum            Reason = "AtMaximum"
	AtMinimum            Reason = "AtMinimum"
	ActionOpen           Reason = "ActionOpen"
	CoolingDown          Reason = "CoolingDown"
	NotSustained         Reason = "NotSustained"         // a trigger has not held for long enough
	SignalsDisagree      Reason = "SignalsDisagree"      // mode All, and not all recommend more
	InsufficientCapacity Reason = "InsufficientCapacity" // every placement is cooling after errors
	LaunchesUnknown      Reason = "OffersUnknown"        // what can be launched is not known
	BackingOff           Reason = "BackingOff"           // launches keep failing
	WorkersUnknown       Reason = "WorkersUnknown"       // the cloud or the cluster cannot be read
	MetricsUnknown       Reason = "MetricsUnknown"       // a removal would need a signal that has no forecast
	TooManyUnready       Reason = "TooManyUnready"       // too many workers are unready for observations to be trusted
	NoRemovableNode      Reason = "NoRemovableNode"      // every worker is blocked
	BlockedByPendingPods Reason = "BlockedByPendingPods" // a removal while pods are pending
	NotIdle              Reason = "NotIdle"              // or not for long enough
	LoadAfterRemoval     Reason = "LoadAfterRemoval"     // the rest would carry too much
	DisruptionLimited    Reason = "DisruptionLimited"    // a budget allows no removal now
)

// MustGo reports whether workers that are removed for a reason have to go, rather than save money.
// Pods may wait then until their nodes are deleted, and do not keep these for good if the pool has
// [Pool.Force].
func MustGo(r Reason) bool { return r != PoolIdle && r != Underutilized }

package journal

// Event is a change to report.
type Event struct {
	Reason   EventReason
	Message  string // a sentence without a full stop
	Warning  bool
	Node     string // the node concerned, "" = none
	Instance string
	Action   string // id
}

// EventReason is the kind of an event, as a word for programs.
type EventReason string

// The events.
const (
	EventLeading         EventReason = "Leading"         // this process took the lease
	EventScaleUpStarted  EventReason = "ScaleUpStarted"  // its plan is in the journal
	EventScaleUpExtended EventReason = "ScaleUpExtended" // further nodes are in its plan
	EventLaunched        EventReason = "Launched"        // an instance
	EventLaunchFailed    EventReason = "LaunchFailed"    // definitively; another may replace it
	// EventLaunchRetried means that the cloud did not answer, or returned an inconclusive error.
	EventLaunchRetried EventReason = "LaunchRetried"
	EventJoined        EventReason = "Joined"     // the node of an instance is Ready
	EventJoinFailed    EventReason = "JoinFailed" // it is not Ready, and its time is over
	// EventGivenUp means that an instance which did not join is no longer kept, because its place is
	// needed.
	EventGivenUp          EventReason = "GivenUp"
	EventVanished         EventReason = "Vanished"         // an instance disappeared without being terminated here
	EventScaledUp         EventReason = "ScaledUp"         // all or part of the nodes joined
	EventScaleUpFailed    EventReason = "ScaleUpFailed"    // nothing joined
	EventScaleUpAborted   EventReason = "ScaleUpAborted"   // it was given up because the pool is being deleted
	EventScaleDownStarted EventReason = "ScaleDownStarted" // its plan is in the journal
	EventScaleDownAborted EventReason = "ScaleDownAborted" // it was given up: nodes are uncordoned where possible
	EventDrained          EventReason = "Drained"          // a node is empty
	EventDrainFailed      EventReason = "DrainFailed"      // the node takes pods again
	EventTerminated       EventReason = "Terminated"       // an instance
	EventScaledDown       EventReason = "ScaledDown"       // its last node is finished
	EventInterrupted      EventReason = "Interrupted"      // the cloud reclaims an instance
	// EventRepairStarted means that a node has been unhealthy for too long: it is drained and
	// terminated.
	EventRepairStarted EventReason = "RepairStarted"
	EventRepairAborted EventReason = "RepairAborted" // it is healthy again, or repairs are not allowed any more
	EventRepairHeld    EventReason = "RepairHeld"    // unhealthy nodes are not repaired
	EventRebalance     EventReason = "Rebalance"     // the cloud advises to leave an instance
	EventReplacement   EventReason = "Replacement"   // of an interrupted or unhealthy instance, in an open scale-up
	EventBroken        EventReason = "Broken"        // the node of a worker has not been Ready for a long time
	EventUnlisted      EventReason = "Unlisted"      // the cloud does not list an instance that runs
	EventAmbiguous     EventReason = "Ambiguous"     // it is unclear which Node belongs to an instance
	EventNotOwned      EventReason = "NotOwned"      // an instance with the pool's tags belongs to another controller
	EventStillEnding   EventReason = "StillEnding"   // an instance whose termination was ordered long ago still exists
	EventDriftUnknown  EventReason = "DriftUnknown"  // the cloud does not report what new instances are
	EventOffersUnknown EventReason = "OffersUnknown" // the cloud does not report what can be launched
	EventPricesUnknown EventReason = "PricesUnknown" // the cloud does not report prices
	EventOrphan        EventReason = "Orphan"        // an instance without a node and without an action
	EventRestored      EventReason = "Restored"      // a node carried the mark of an action that is over
	EventNodeDeleted   EventReason = "NodeDeleted"   // the Node of an instance that is gone
	EventDeleted       EventReason = "Deleted"       // nothing of the pool is left
)

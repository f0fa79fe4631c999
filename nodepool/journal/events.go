package journal

// Event is something that happened.
type Event struct {
	Reason   EventReason
	Message  string // a sentence without a full stop
	Warning  bool
	Node     string // that it is about, "" = none
	Instance string
	Action   string // id
}

// EventReason says what happened, as a word for programs.
type EventReason string

// The events.
const (
	EventLeading         EventReason = "Leading"         // this process took the lease
	EventScaleUpStarted  EventReason = "ScaleUpStarted"  // its plan is in the journal
	EventScaleUpExtended EventReason = "ScaleUpExtended" // further nodes are in its plan
	EventLaunched        EventReason = "Launched"        // an instance
	EventLaunchFailed    EventReason = "LaunchFailed"    // definitively; another may take its place
	// the cloud has not answered, or has thrown an error that says nothing: it is tried again
	EventLaunchRetried EventReason = "LaunchRetried"
	EventJoined        EventReason = "Joined"     // the node of an instance is Ready
	EventJoinFailed    EventReason = "JoinFailed" // it is not, and its time is over
	// an instance that did not join is not kept any longer, as its place is needed
	EventGivenUp          EventReason = "GivenUp"
	EventVanished         EventReason = "Vanished"         // an instance went that nobody here terminated
	EventScaledUp         EventReason = "ScaledUp"         // all or part of the nodes joined
	EventScaleUpFailed    EventReason = "ScaleUpFailed"    // nothing joined
	EventScaleUpAborted   EventReason = "ScaleUpAborted"   // it is given up, as the pool is being deleted
	EventScaleDownStarted EventReason = "ScaleDownStarted" // its plan is in the journal
	EventScaleDownAborted EventReason = "ScaleDownAborted" // it is given up: nodes that can be are restored
	EventDrained          EventReason = "Drained"          // a node is empty
	EventDrainFailed      EventReason = "DrainFailed"      // the node takes pods again
	EventTerminated       EventReason = "Terminated"       // an instance
	EventScaledDown       EventReason = "ScaledDown"       // its last node is done with
	EventInterrupted      EventReason = "Interrupted"      // the cloud takes an instance back
	// a node has been unhealthy for long: it is drained and terminated
	EventRepairStarted EventReason = "RepairStarted"
	EventRepairAborted EventReason = "RepairAborted" // it is healthy again, or nothing is to be repaired any more
	EventRepairHeld    EventReason = "RepairHeld"    // unhealthy nodes are not repaired
	EventRebalance     EventReason = "Rebalance"     // the cloud advises to leave an instance
	EventReplacement   EventReason = "Replacement"   // of an interrupted or unhealthy instance, in an open scale-up
	EventBroken        EventReason = "Broken"        // the node of a worker has not been Ready for long
	EventUnlisted      EventReason = "Unlisted"      // the cloud does not list an instance that runs
	EventAmbiguous     EventReason = "Ambiguous"     // it is not certain which Node is the one of an instance
	EventNotOwned      EventReason = "NotOwned"      // an instance with the pool's tags belongs to another
	EventStillEnding   EventReason = "StillEnding"   // an instance that was told to end long ago is not gone
	EventDriftUnknown  EventReason = "DriftUnknown"  // the cloud does not say what new instances are
	EventOffersUnknown EventReason = "OffersUnknown" // the cloud does not say what can be launched
	EventPricesUnknown EventReason = "PricesUnknown" // the cloud does not say what instances cost
	EventOrphan        EventReason = "Orphan"        // an instance without a node and without an action
	EventRestored      EventReason = "Restored"      // a node carried the mark of an action that is over
	EventNodeDeleted   EventReason = "NodeDeleted"   // the Node of an instance that has gone
	EventDeleted       EventReason = "Deleted"       // nothing of the pool is left
)

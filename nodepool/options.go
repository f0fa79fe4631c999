package nodepool

import (
	"context"
	"errors"
	"time"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/signal"
	"github.com/foresail/foresail/nodepool/state"
)

// Options is what a [Pool] is made of.
type Options struct {
	Name  string // of the pool
	Owner string // of its lease: unique for each run of a process

	// Spec is asked at each cycle, so that changes are heard without a restart. An error keeps the one before; without one
	// before the cycle fails.
	Spec func() (Spec, error)

	Store    state.Store
	Provider provider.Provider
	Observer Observer
	Signals  Signals
	Drainer  Drainer
	Labeler  Labeler
	Notices  provider.Notices // nil: nobody reports interruptions
	Reporter Reporter         // nil: nobody is told
	Claims   *Claims          // of all pools of the process; nil: pods are no other pool's

	// LetGo is called when nothing is left of a pool that is being deleted, by the process that leads; it may be called more
	// than once. nil: nothing waits for that.
	LetGo func(ctx context.Context) error

	Now  func() time.Time
	Seed uint64 // of the jitter of retries

	// StepInterval is how often an open action is looked at; 0 = 2 s.
	StepInterval time.Duration
	// BindGrace is how long pods that were on their way to a node when it was tainted are waited for at least; 0 = 3 s.
	BindGrace time.Duration
	// MaxBindGrace is how long at most, while a scheduler may have found nodes for pods that are not bound yet; 0 = 30 s,
	// in which it binds a thousand pods.
	MaxBindGrace time.Duration
	// VanishGrace is for how long an instance that the cloud does not list, though it should, is taken to be there still;
	// 0 = 2 min.
	VanishGrace time.Duration
}

// Observer sees the cluster. Each pool has one of its own, as a wake is received once.
type Observer interface {
	// Observe returns what is known of the cluster, and an error until it is known.
	Observe(ctx context.Context) (*cluster.Cluster, error)
	// Wake receives when something is worth an early cycle.
	Wake() <-chan struct{}
}

// Signals forecasts the load of the pool. Its calls return soon: what cannot be read is not known.
type Signals interface {
	Observe(ctx context.Context, o signal.Observation) []plan.Signal
	// Seasonal returns nil if the pool has no seasonal floor.
	Seasonal(ctx context.Context, now time.Time, startupTime time.Duration) *plan.Seasonal
}

// Drainer empties nodes. All its calls may be repeated.
type Drainer interface {
	// Taint keeps new pods from the node, and tells the action that it leaves by.
	Taint(ctx context.Context, node, action string) error
	// Cordon marks the node unschedulable.
	Cordon(ctx context.Context, node string) error
	// Restore undoes both; a node that has gone is no error.
	Restore(ctx context.Context, node string) error
	// Blockers returns why the node must not be drained, as a fresh list of its pods tells.
	Blockers(ctx context.Context, node string) ([]string, error)
	// Arriving tells whether a scheduler may have found a node for pods that are not bound yet, as a fresh list tells.
	Arriving(ctx context.Context) (bool, error)
	// Evict evicts, without waiting, the pods that are not yet leaving.
	Evict(ctx context.Context, node string, l drain.Limits) (drain.Progress, error)
	// Attached returns the volumes that are attached, by node.
	Attached(ctx context.Context) (map[string][]string, error)
	// NodeOf returns the name of the Node of an instance, as a fresh list of all Nodes tells, "" if it has none.
	NodeOf(ctx context.Context, providerID, instanceID string) (string, error)
	// DeleteNode deletes the node if it still has the provider id; one that has gone is no error.
	DeleteNode(ctx context.Context, node, providerID string) error
}

// Labeler sets labels of the node of a worker that joins: [cluster.LabelPool], so that it is known for one of the pool's
// when its instance has gone, and those of the template. A node that has gone is no error.
type Labeler interface {
	Label(ctx context.Context, node string, labels map[string]string) error
}

// Reporter tells people and programs what a cycle came to. It must not keep the cycle waiting for long.
type Reporter interface {
	Report(ctx context.Context, t CycleReport)
}

// CycleReport is everything that is to be known of one cycle.
type CycleReport struct {
	Pool       string
	Generation int64 // of the WorkerPool whose spec the decision follows
	At         time.Time
	Leading    bool // this process holds the lease; the others observe and do nothing
	DryRun     bool
	Decision   plan.Decision
	Snapshot   plan.Snapshot // that the decision was made from
	Record     state.Record  // after the cycle, as far as it is known; read only
	// StartupTime is how long launches take until their nodes are Ready, as assumed or measured.
	StartupTime time.Duration
	// Health is why the pool cannot do what it decides, nil if it can: errors of the cloud, the cluster and the journal.
	Health error
	Events []Event // what happened in this cycle, in order
	// Deletion is what is left of a pool that is being deleted, nil for one that is not.
	Deletion *Deletion
}

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
	EventLeading          EventReason = "Leading"          // this process took the lease
	EventScaleUpStarted   EventReason = "ScaleUpStarted"   // its plan is in the journal
	EventScaleUpExtended  EventReason = "ScaleUpExtended"  // further nodes are in its plan
	EventLaunched         EventReason = "Launched"         // an instance
	EventLaunchFailed     EventReason = "LaunchFailed"     // definitively; another may take its place
	EventLaunchRetried    EventReason = "LaunchRetried"    // the cloud has not answered, or has thrown an error that says nothing: it is tried again
	EventJoined           EventReason = "Joined"           // the node of an instance is Ready
	EventJoinFailed       EventReason = "JoinFailed"       // it is not, and its time is over
	EventGivenUp          EventReason = "GivenUp"          // an instance that did not join is not kept any longer, as its place is needed
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
	EventRepairStarted    EventReason = "RepairStarted"    // a node has been unhealthy for long: it is drained and terminated
	EventRepairAborted    EventReason = "RepairAborted"    // it is healthy again, or nothing is to be repaired any more
	EventRepairHeld       EventReason = "RepairHeld"       // unhealthy nodes are not repaired
	EventRebalance        EventReason = "Rebalance"        // the cloud advises to leave an instance
	EventReplacement      EventReason = "Replacement"      // of an interrupted or unhealthy instance, in an open scale-up
	EventBroken           EventReason = "Broken"           // the node of a worker has not been Ready for long
	EventUnlisted         EventReason = "Unlisted"         // the cloud does not list an instance that runs
	EventAmbiguous        EventReason = "Ambiguous"        // it is not certain which Node is the one of an instance
	EventNotOwned         EventReason = "NotOwned"         // an instance with the pool's tags belongs to another
	EventStillEnding      EventReason = "StillEnding"      // an instance that was told to end long ago is not gone
	EventDriftUnknown     EventReason = "DriftUnknown"     // the cloud does not say what new instances are
	EventOffersUnknown    EventReason = "OffersUnknown"    // the cloud does not say what can be launched
	EventPricesUnknown    EventReason = "PricesUnknown"    // the cloud does not say what instances cost
	EventOrphan           EventReason = "Orphan"           // an instance without a node and without an action
	EventRestored         EventReason = "Restored"         // a node carried the mark of an action that is over
	EventNodeDeleted      EventReason = "NodeDeleted"      // the Node of an instance that has gone
	EventDeleted          EventReason = "Deleted"          // nothing of the pool is left
)

// NotDecided is the reason of a cycle that came to no decision, as the journal could not be read.
const NotDecided plan.Reason = "JournalUnknown"

func (o *Options) complete() error {
	switch {
	case o.Name == "":
		return errors.New("the pool has no name")
	case o.Owner == "":
		return errors.New("the owner of the lease has no name")
	case o.Spec == nil, o.Store == nil, o.Provider == nil, o.Observer == nil, o.Signals == nil, o.Drainer == nil, o.Labeler == nil, o.Now == nil:
		return errors.New("a pool needs Spec, Store, Provider, Observer, Signals, Drainer, Labeler and Now")
	}
	o.StepInterval = orElse(o.StepInterval, 2*time.Second)
	o.BindGrace = orElse(o.BindGrace, 3*time.Second)
	o.MaxBindGrace = orElse(o.MaxBindGrace, 30*time.Second)
	o.VanishGrace = orElse(o.VanishGrace, 2*time.Minute)
	return nil
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

package plan

import (
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/internal/keepalive"
)

// Snapshot is everything that a decision is made from. A decision neither changes nor keeps it.
type Snapshot struct {
	Now  time.Time
	Pool Pool

	Workers []Worker // of the pool, the ones on their way and the ones that leave included
	// WorkersErr is why the workers cannot be trusted, "" if they can: the cloud or the cluster could not be read. Then
	// nothing is launched, not even for the minimum, and nothing is removed.
	WorkersErr string

	Pending  Pending
	Signals  []Signal
	Seasonal *Seasonal // nil: the pool has no seasonal floor
	// StartupTime is the time from the launch of a worker until it is Ready, as the last ones took.
	StartupTime time.Duration

	Homes Homes // nil: it is not asked where the pods of a removed worker would run

	Disruption Disruption

	State  State
	Offers []fleet.Offer // what can be launched, in order of preference of instance types
	// OffersErr is why that is not known or may be out of date, "" if it is known.
	OffersErr string
	// Prices are those of offers, where they decide: the cheapest that will do is launched. An offer that is missing comes
	// after the others. nil: offers are launched in their order.
	Prices    map[fleet.Offer]fleet.Price
	PricesErr string                 // why some that would decide are not known
	Quotas    map[string]fleet.Quota // by instance type
	// Notices are of instances that the cloud takes back or that are unhealthy and being removed, until a replacement for them has been decided on. Whether they
	// are marked as leaving by then makes no difference.
	Notices  []Notice
	Messages []Message // of the cloud, that nothing has been decided about yet

	Instances  []Instance // all that have been seen of the pool, by id; only for what is tidied up, and for messages
	Foreign    []Foreign  // instances with the pool's tags that belong to another controller
	Unlistable bool       // the cloud does not answer: whose instance a message is about may not be known
	// EmptySince is since when nothing of the pool has been left, nor can come; zero = something is left, or that is not known.
	EmptySince time.Time
}

// Homes answers where pods would run. It is as pure as everything else in a Snapshot.
type Homes interface {
	// Without returns why the pods of these nodes could not all run on the others and on new ones, "" if they
	// could. Pods that mayWait have a place also if they get it only when the nodes have been deleted, as long as
	// their PodDisruptionBudgets let that many be away.
	Without(nodes []string, mayWait bool, added ...fleet.Placement) string
}

// Disruption is what budgets allow at this moment.
type Disruption struct {
	Nodes  int    // that may be disrupted at once, those included that are not Ready, are broken or leave already
	Why    string // the budget that says so
	Paused bool   // nothing is disrupted for being outdated
}

// Pool is the configuration of a pool, with its defaults filled in. Beside them, the zero value of Mode means Any, that of
// MaxBatchDown 1, that of RemovalOrder all scorers in the order of their constants, and those of DistrustShare, DistrustCount
// and MaxFailureBackoff [DefaultDistrustShare], [DefaultDistrustCount] and [DefaultMaxFailureBackoff].
type Pool struct {
	Name              string
	Min, Max          int // workers; control-plane nodes are never counted
	MaxBatchUp        int // most nodes that one scale-up launches; 0 = [MaxBatch], and never more
	MaxBatchDown      int // most nodes that one scale-down removes, at most [MaxBatch]
	Mode              Mode
	PendingFor        time.Duration // how long a pod must be unschedulable before it counts
	PodsPerNode       int           // for pods without requests
	Idle              Idle
	Consolidate       bool          // workers go before the pool is idle, once the rest has carried their load for Idle.For
	CooldownUp        time.Duration // after a verified scale-up or scale-down, until the next scale-up
	CooldownDown      time.Duration
	SpotRatio         float64  // share of the workers above OnDemandBase that are Spot, in [0, 1]
	OnDemandBase      int      // workers that are On-Demand whatever the ratio
	RemovalOrder      []Scorer // the order in which workers are compared for removal
	DistrustShare     float64  // of workers unready, above which nothing is removed ...
	DistrustCount     int      // ... if it is more than so many
	MaxFailureBackoff time.Duration
	Repair            Repair
	Deleting          bool // all workers are to go: nothing is launched, and neither Min nor MaxBatchDown holds
	Join              Join
	Force             bool          // drain.force: pods keep no worker that must go
	VanishGrace       time.Duration // how long an instance that is not listed, though it should be, is taken to be there still
}

// Join says when a launch has failed.
type Join struct {
	Timeout       time.Duration // from the request for the instance until its Node is Ready
	KeepFailedFor time.Duration // until an instance that did not join is terminated
	KeepFailed    bool          // it never is
}

// MaxBatch is the most nodes that one action can have: what the journal has of them is written whole, again and again.
const MaxBatch = 500

// What fields of [Pool] are if they are zero.
const (
	DefaultDistrustShare     = 0.45
	DefaultDistrustCount     = 3
	DefaultMaxFailureBackoff = 30 * time.Minute
)

// Mode says how triggers of a scale-up combine.
type Mode string

// The modes.
const (
	Any Mode = "Any" // the largest want wins (seeds 000, 001)
	All Mode = "All" // utilisation and pending pods must both ask (seed 003)
)

// Idle is when a pool has too many workers.
type Idle struct {
	For         time.Duration
	WaitCost    float64 // node-minutes that a minute is worth in which one pod waits for a node; 0 = workers are kept for For alone
	CPU, Memory float64 // mean share of the workers' CPU and memory in use, below which they are idle; from 1 on it is not asked for
}

// Scorer compares two workers for removal.
type Scorer string

// The scorers (seeds 001, 002).
const (
	FullestZone Scorer = "FullestZone" // the one in the zone with most workers
	Idlest      Scorer = "Idlest"      // the one that uses least
	FewestPods  Scorer = "FewestPods"  // the one with fewest pods
	Oldest      Scorer = "Oldest"      // the one that has been there for longest
)

// Worker is an instance of the pool, or a Node of one.
type Worker struct {
	InstanceID string
	Node       string // name of its Node; "" = none has joined
	fleet.Placement
	Launched time.Time
	Ready    bool // its Node is Ready and takes pods
	Cordoned bool // its Node is Ready and takes no pods any more, whoever has said so: it goes before others
	Leaving  bool // it is being removed, or the cloud takes it away
	Ended    bool // it is Leaving, and nothing runs on it any more
	Failed   bool // it did not join in time and does not count, but has its place until it is gone
	Broken   bool // it has failed, as its Node has not been Ready for long
	// BrokenFor is for how long its Node has not been Ready, once that is longer than a join may take; 0 until then. A worker for
	// which that holds may count all the same, where there are several.
	BrokenFor time.Duration
	Unhealthy BadCondition // for what its Node is to be repaired, if for anything
	Kept      bool         // it has failed, and is kept to be looked at until its time is over or its place is needed

	Outdated    string  // why it is to be replaced, "" if it is not: a part of a sentence
	OutdatedErr string  // why that is not known, "" if it is
	Pods        int     // that a drain would move
	Utilisation float64 // the larger share of its CPU and memory in use
	Known       bool    // Utilisation is known
	Blocked     string  // why it must not be removed, "" if it may: a sentence without a full stop
	// BlockedByPods says that nothing but its pods, or their PodDisruptionBudgets, blocks its removal.
	BlockedByPods bool
}

// Counts tells whether the worker is one of those that a want is compared with: it works or is expected to.
func (w Worker) Counts() bool { return !w.Leaving && !w.Failed }

// Pending is the demand of pods that no node takes.
type Pending struct {
	Known bool // false: pods could not be read
	Pods  int  // unschedulable at all that a node of the pool could run
	Due   int  // of them, unschedulable for longer than Pool.PendingFor
	Nodes int  // new nodes that hold the due ones, packed, beyond what is on its way
	Room  int  // of the due ones, those for which nodes that are there have room by all that is known
	// Overlooked are those for which nodes have had room for so long that the scheduler must have a reason of its own: nothing
	// waits for them.
	Overlooked int
	// NoCapacity are, of Pods, those that only instances could run which the cloud had none of when they were tried
	// last, and NoCapacityDue those of Due. Their nodes are NoCapacityNodes of Nodes. Launches for them are tried,
	// and nothing waits for them.
	NoCapacity, NoCapacityDue, NoCapacityNodes int

	// Waiting are, of the due ones, those that wait only until nodes which are being emptied are deleted: no node
	// is launched for them.
	Waiting    int
	Filtered   int // of the due ones, those that are refused the nodes that were there as these are predicted to use too much
	Unhelped   []fleet.Unhelped
	BackingOff int           // of Unhelped, those that the node did not take which was launched for them
	OldestFor  time.Duration // of the due ones
	// Shapes are, of Nodes, those for which not every offer will do, and Later the further ones that pods need that are not
	// due yet, or will need once they are evicted from nodes that are being emptied.
	Shapes, Later []fleet.Shape
}

// any reports whether pods are pending that a removal could hurt: nodes that are there, on their way or launched
// next will run them. A number below zero says nothing, and so not that there are none.
func (p Pending) any() bool {
	return p.Pods-p.NoCapacity != p.Overlooked || p.Due-p.NoCapacityDue != p.Overlooked
}

// waiting returns how many pods [Pending.any] is about.
func (p Pending) waiting() int { return p.Pods - p.NoCapacity - p.Overlooked }

// Signal is what one metric says.
type Signal struct {
	Name  string
	Known bool   // false: no forecast; the signal neither raises nor permits a removal
	Err   string // why not
	// Silent says of which workers nothing is known, "" if there are none. The load is at least what the others carry: the
	// signal may raise the number of workers, and permits no removal.
	Silent string

	Now       float64 // P_now, the mean of the workers
	Predicted float64 // P_H
	Threshold float64 // τ
	Horizon   time.Duration
	// Want is N* of the pipeline, not limited by minimum, maximum or batch. No removal leaves fewer, so a signal that has
	// nothing against one wants no more than Fits.
	Want int

	For   time.Duration // how long Want must have been above the workers before it counts
	Since time.Time     // since when it has been; zero = it is not

	Margin      float64 // μ: the load of the workers that stay may be at most Threshold/(1+μ)
	Down        float64 // the load below which a worker may be removed; 0 = Threshold/(1+μ) alone decides
	Needs       int     // as many as carry the present load and the predicted one without a margin: fewer of those that are replaced may not stay
	Fits        int     // ⌈N(A, τ/(1+μ))⌉ of the present load and of the predicted one, the larger: as many must stay
	CPU         bool    // the mean use of CPU that the idle rule looks at
	Memory      bool    // that of memory
	InformsOnly bool    // it only informs the idle rule
	WithPending bool    // what it wants includes what pending pods need
	Level       bool    // what it wants is relative to the workers there are: it does not say how many the load needs
}

// Seasonal is what the same hour of past weeks asked for (seed 001, layer two). It can raise a want and never lower it. It
// is not known if the confidence is too low for it to be heard.
type Seasonal struct {
	Known      bool
	Err        string
	Nodes      int
	Confidence float64 // in [0, 1]
}

// State is what is remembered of earlier decisions.
type State struct {
	Action              ActionKind // that is open; "" = none
	ActionID            string
	Planned             int               // nodes of an open scale-up that are not launched yet, and so no workers; lost ones are among them
	PlannedAt           []fleet.Placement // where those will be that are not lost
	Lost                []Lost            // nodes of an open scale-up that cannot be launched as they were planned
	Room                int               // further nodes that an open scale-up takes; 0 = it takes none
	Removals            []Removal         // that are open, whatever they are for
	PendingTerminations []PendingTermination
	LastUp, LastDown    time.Time         // verified completions; zero = never. Of these times, one in the future counts as now
	LastSwap            time.Time         // of those that replace outdated workers: only removals wait after them
	Failures            int               // scale-ups in a row in which nothing joined
	FailedAt            time.Time         // the last of them
	Demand              keepalive.History // of the numbers of workers that were needed
	SpareSince          time.Time         // since when fewer workers would have been enough; zero = they would not
	IdleSince           time.Time         // since when the pool has been idle; zero = it is not
	Replacing           int               // how many workers there were when the replacement of outdated ones began; 0 = it has not
	DecidedAt           time.Time         // when the last decision was made; zero = it is not known
	Cooling             []fleet.Cooling
	DrainBackoff        map[string]time.Time // instance → until when it is left alone, after a drain that failed
}

// ActionKind is the kind of an action that is open.
type ActionKind string

// The kinds.
const (
	ActionUp   ActionKind = "ScaleUp"
	ActionDown ActionKind = "ScaleDown"
)

// Notice says that the cloud takes an instance back, or that it is removed as its Node is unhealthy.
type Notice struct {
	InstanceID string
	Deadline   time.Time
	Unhealthy  bool // it is its Node that is unhealthy, and the pool that removes it
}

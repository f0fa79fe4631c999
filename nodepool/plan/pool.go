package plan

import "time"

// Pool is the configuration of a pool, with its defaults filled in. The zero value of Mode means
// Any, that of MaxBatchDown 1, that of RemovalOrder all scorers in the order of their constants,
// and those of DistrustShare, DistrustCount and MaxFailureBackoff [DefaultDistrustShare],
// [DefaultDistrustCount] and [DefaultMaxFailureBackoff].
type Pool struct {
	Name              string
	Min, Max          int // workers; control-plane nodes are never counted
	MaxBatchUp        int // largest number of nodes of one scale-up; 0 = [MaxBatch], which is also the upper bound
	MaxBatchDown      int // largest number of nodes of one scale-down, at most [MaxBatch]
	Mode              Mode
	PendingFor        time.Duration // how long a pod must be unschedulable before it counts
	PodsPerNode       int           // for pods without requests
	Idle              Idle
	Consolidate       bool          // remove spare workers before the pool is idle, once they were spare for Idle.For
	CooldownUp        time.Duration // after a verified scale-up or scale-down, until the next scale-up
	CooldownDown      time.Duration
	SpotRatio         float64  // share of the workers above OnDemandBase that are Spot, in [0, 1]
	OnDemandBase      int      // workers that are On-Demand whatever the ratio
	RemovalOrder      []Scorer // the order in which workers are compared for removal
	DistrustShare     float64  // share of unready workers above which nothing is removed ...
	DistrustCount     int      // ... if more than this many are
	MaxFailureBackoff time.Duration
	Repair            Repair
	Deleting          bool // all workers are removed: nothing is launched, and neither Min nor MaxBatchDown applies
	Join              Join
	Force             bool          // drain.force: pods do not keep a worker that must be removed
	VanishGrace       time.Duration // how long an instance is assumed to exist although the cloud does not list it
}

// Join defines when a launch has failed.
type Join struct {
	Timeout       time.Duration // from the request for the instance until its Node is Ready
	KeepFailedFor time.Duration // until an instance that did not join is terminated
}

// MaxBatch bounds the nodes of one action: each write of the journal contains all of them.
const MaxBatch = 500

// Defaults of fields of [Pool] that are zero.
const (
	DefaultDistrustShare     = 0.45
	DefaultDistrustCount     = 3
	DefaultMaxFailureBackoff = 30 * time.Minute
)

// Mode defines how the triggers of a scale-up combine.
type Mode string

// The modes.
const (
	Any Mode = "Any" // the largest recommendation wins
	All Mode = "All" // a signal and pending pods must both recommend more
)

// Idle defines when a pool has too many workers.
type Idle struct {
	For time.Duration
	// WaitCost is the cost of one pod waiting for one minute, in node-minutes; 0 = idle workers are
	// kept for For.
	WaitCost    float64
	CPU, Memory float64 // mean share in use below which workers are idle; 1 or more = not compared
}

// Scorer is a criterion by which two workers are compared for removal.
type Scorer string

// The scorers.
const (
	FullestZone Scorer = "FullestZone" // the worker in the zone with the most workers
	Idlest      Scorer = "Idlest"      // the worker that uses least
	FewestPods  Scorer = "FewestPods"  // the worker with the fewest pods
	Oldest      Scorer = "Oldest"      // the worker that was launched first
)

// Batch returns the largest number of nodes that one scale-up launches.
func (p Pool) Batch() int {
	if p.MaxBatchUp < 1 {
		return MaxBatch
	}
	return min(p.MaxBatchUp, MaxBatch)
}

// Distrusts reports whether so many of the workers are unready that observations cannot be trusted.
func (p Pool) Distrusts(unready, workers int) bool {
	return unready > p.DistrustCount && float64(unready) > p.DistrustShare*float64(workers)
}

func (p Pool) defaulted() Pool {
	if p.Mode == "" {
		p.Mode = Any
	}
	p.MaxBatchUp = p.Batch()
	p.MaxBatchDown = min(max(1, p.MaxBatchDown), MaxBatch)
	if len(p.RemovalOrder) == 0 {
		p.RemovalOrder = []Scorer{FullestZone, Idlest, FewestPods, Oldest}
	}
	if p.DistrustShare == 0 {
		p.DistrustShare = DefaultDistrustShare
	}
	if p.DistrustCount == 0 {
		p.DistrustCount = DefaultDistrustCount
	}
	if p.MaxFailureBackoff == 0 {
		p.MaxFailureBackoff = DefaultMaxFailureBackoff
	}
	return p
}

// Repair defines which Nodes are unhealthy, and after what time they are replaced. The zero value
// repairs none.
type Repair struct {
	Disabled   bool
	Conditions []UnhealthyCondition
}

// UnhealthyCondition is a condition that a working Node does not have.
type UnhealthyCondition struct {
	Type, Status string
	After        time.Duration // until a Node that has it is repaired
}

// NodeCondition is a condition of a Node.
type NodeCondition struct {
	Type, Status string
	Since        time.Time // time since which it has certainly had this status
}

// BadCondition is the condition for which a worker is repaired. The zero value means that it is
// healthy.
type BadCondition struct {
	Condition string // such as Ready=Unknown
	Since     time.Time
	After     time.Duration
}

// Holds reports whether the Node is unhealthy.
func (u BadCondition) Holds() bool { return u.Condition != "" }

// Due returns the time at which the worker is repaired.
func (u BadCondition) Due() time.Time { return u.Since.Add(u.After) }

// Unhealthy returns the condition of a Node that is due for repair first.
func (r Repair) Unhealthy(conditions []NodeCondition) (first BadCondition) {
	for _, bad := range r.Conditions {
		for _, c := range conditions {
			if c.Type != bad.Type || c.Status != bad.Status {
				continue
			}
			u := BadCondition{Condition: c.Type + "=" + c.Status, Since: c.Since, After: bad.After}
			if !first.Holds() || u.Due().Before(first.Due()) {
				first = u
			}
		}
	}
	return first
}

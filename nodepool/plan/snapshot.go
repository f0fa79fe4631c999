package plan

import (
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"
)

// Snapshot is the whole input of a decision, which neither changes nor keeps it. Its methods are in
// offers.go: they answer what can be launched and at what price.
type Snapshot struct {
	Now  time.Time
	Pool Pool

	Instances []Instance // all known ones of the pool, in order of their launch; some of them are its workers
	// WorkersErr is why the workers cannot be trusted, "" if they can: the cloud or the cluster could
	// not be read. Then nothing is launched, not even for the minimum, and nothing is removed.
	WorkersErr string

	Pending  Pending
	Signals  []Signal
	Seasonal *Seasonal // nil: the pool has no seasonal floor
	// StartupTime is the time from the launch of a worker until it is Ready, measured on recent
	// launches.
	StartupTime time.Duration

	Simulator Simulator // nil: places for the pods of removed workers are not checked

	Disruption Disruption

	Record state.Record // of earlier decisions; decisions continue its open action
	// DecidedAt is the time of the last decision, even if the record was not written since; zero =
	// unknown.
	DecidedAt time.Time

	Offers []fleet.Offer // what can be launched, in order of preference of instance types
	// OffersErr is why that is unknown or may be outdated, "" if it is known.
	OffersErr string
	// Prices make the cheapest suitable offer win. Offers without a price come last. nil: offers are
	// launched in their order.
	Prices    map[fleet.Offer]fleet.Price
	PricesErr string                 // why some that would decide are unknown
	Quotas    map[string]fleet.Quota // by instance type
	Messages  []Message              // of the cloud, about which nothing has been decided yet

	Foreign    []Foreign // instances with the pool's tags that belong to another controller
	Unlistable bool      // the cloud does not answer: the instance of a message may be unknown
	// EmptySince is the time since which nothing of the pool has been left, and nothing more can
	// appear; zero = something is left, or unknown.
	EmptySince time.Time
}

// Simulator simulates where pods would run. It is as pure as everything else in a Snapshot.
type Simulator interface {
	// Without returns why the pods of these nodes would not all fit on the other nodes and on added
	// ones, "" if they would. With mayWait it is enough if they fit once the nodes have been deleted,
	// as long as their PodDisruptionBudgets allow that many to be unavailable.
	Without(nodes []string, mayWait bool, added ...fleet.Placement) string
}

// Disruption is the allowance of the budgets now.
type Disruption struct {
	Nodes  int    // may be disrupted at once, including those that are not Ready, are broken or already leave
	Why    string // the budget that decides
	Paused bool   // no worker is disrupted for being outdated
}

// Message is an unsolicited report of the cloud about an instance.
type Message struct {
	InstanceID   string
	Interruption bool // the cloud reclaims it; otherwise it advises to leave it
	Deadline     time.Time
}

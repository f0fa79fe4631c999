package plan

import (
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"
)

// Snapshot is everything that a decision is made from. A decision neither changes nor keeps it. Its
// methods are in offers.go: they are questions about what can be launched and for how much.
type Snapshot struct {
	Now  time.Time
	Pool Pool

	Instances []Instance // all that are known of the pool, in order of their launch; some of them are its workers
	// WorkersErr is why the workers cannot be trusted, "" if they can: the cloud or the cluster
	// could not be read. Then nothing is launched, not even for the minimum, and nothing is
	// removed.
	WorkersErr string

	Pending  Pending
	Signals  []Signal
	Seasonal *Seasonal // nil: the pool has no seasonal floor
	// StartupTime is the time from the launch of a worker until it is Ready, as the last ones took.
	StartupTime time.Duration

	Homes Homes // nil: the places of the pods of a removed worker are not checked

	Disruption Disruption

	Record state.Record // of earlier decisions: its open action is what decisions continue
	// DecidedAt is when the last decision was made, also if the record was not written since; zero = it is not known.
	DecidedAt time.Time

	Offers []fleet.Offer // what can be launched, in order of preference of instance types
	// OffersErr is why that is not known or may be out of date, "" if it is known.
	OffersErr string
	// Prices of offers make the cheapest suitable one win. An offer without a price comes after the
	// others. nil: offers are launched in their order.
	Prices    map[fleet.Offer]fleet.Price
	PricesErr string                 // why some that would decide are not known
	Quotas    map[string]fleet.Quota // by instance type
	Messages  []Message              // of the cloud, about which nothing has been decided yet

	Foreign    []Foreign // instances with the pool's tags that belong to another controller
	Unlistable bool      // the cloud does not answer: the instance that a message is about may be unknown
	// EmptySince is since when nothing of the pool has been left, nor can come; zero = something is
	// left, or unknown.
	EmptySince time.Time
}

// Homes answers where pods would run. It is as pure as everything else in a Snapshot.
type Homes interface {
	// Without returns why the pods of these nodes could not all run on the others and on new ones,
	// "" if they could. Pods that mayWait have a place also if they get it only when the nodes have
	// been deleted, as long as their PodDisruptionBudgets let that many be away.
	Without(nodes []string, mayWait bool, added ...fleet.Placement) string
}

// Disruption is what budgets allow at this moment.
type Disruption struct {
	Nodes  int    // that may be disrupted at once, those included that are not Ready, are broken or leave already
	Why    string // the budget that says so
	Paused bool   // no worker is disrupted for being outdated
}

// Message is a report of the cloud about an instance that was not asked for.
type Message struct {
	InstanceID   string
	Interruption bool // the cloud takes it back; otherwise it advises to leave it
	Deadline     time.Time
}

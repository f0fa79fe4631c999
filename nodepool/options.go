package nodepool

import (
	"context"
	"errors"
	"time"

	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// Options configures a [Pool].
type Options struct {
	Name  string // of the pool
	Owner string // of its lease: unique for each run of a process

	// Spec is called in each cycle, so that changes take effect without a restart. After an error the
	// previous result is used; without one the cycle fails.
	Spec func() (config.Spec, error)

	Store    state.Store
	Provider provider.Provider
	Observer observe.Cluster
	Signals  forecast.Signals
	Drainer  act.Drainer
	Labeler  act.Labeler
	Notices  provider.Notices // nil: interruptions are not received
	Reporter Reporter         // nil: nothing is reported
	Claims   *forecast.Claims // of all pools of the process; nil: no other pool takes pods

	// ReleaseFinalizer is called by the leading process when nothing is left of a pool that is being
	// deleted. It may be called more than once. nil: there is no finalizer.
	ReleaseFinalizer func(ctx context.Context) error

	Now  func() time.Time
	Seed uint64 // for the jitter of retries

	// StepInterval is the interval of cycles while an action is open; 0 = 2 s.
	StepInterval time.Duration
	// BindGrace is the shortest wait for pods that were being bound to a node when it was tainted; 0 =
	// 3 s.
	BindGrace time.Duration
	// MaxBindGrace is the longest wait, used while a scheduler may have chosen nodes for pods that are
	// not bound yet; 0 = 30 s, in which it binds a thousand pods.
	MaxBindGrace time.Duration
	// VanishGrace is the time for which an instance is assumed to exist although the cloud does not
	// list it; 0 = 2 min.
	VanishGrace time.Duration
}

// Reporter reports the outcome of cycles. It must not delay them for long.
type Reporter interface {
	Report(ctx context.Context, t CycleReport)
}

// CycleReport is everything to report about one cycle.
type CycleReport struct {
	Pool       string
	Generation int64 // of the WorkerPool whose spec was used
	At         time.Time
	Leading    bool // this process holds the lease; others only observe
	DryRun     bool
	Decision   plan.Decision
	Snapshot   plan.Snapshot // input of the decision
	Record     state.Record  // after the cycle, as far as it is known; read only
	// StartupTime is the time from a launch to a Ready node, as assumed or measured.
	StartupTime time.Duration
	// Health is why the pool cannot carry out its decisions, nil if it can: errors of the cloud, the
	// cluster and the journal.
	Health error
	Events []journal.Event // of this cycle, in order
	// Deletion describes the rest of a pool that is being deleted, nil for other pools.
	Deletion *Deletion
}

// NotDecided is the reason of a cycle without a decision, because the journal could not be read.
const NotDecided plan.Reason = "JournalUnknown"

func (o *Options) complete() error {
	switch {
	case o.Name == "":
		return errors.New("the pool has no name")
	case o.Owner == "":
		return errors.New("the owner of the lease has no name")
	case o.Spec == nil, o.Store == nil, o.Provider == nil, o.Observer == nil, o.Signals == nil, o.Drainer == nil,
		o.Labeler == nil, o.Now == nil:
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

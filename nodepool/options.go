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

// Options is what a [Pool] is made of.
type Options struct {
	Name  string // of the pool
	Owner string // of its lease: unique for each run of a process

	// Spec is asked at each cycle, so that changes are heard without a restart. An error keeps the one before; without one
	// before the cycle fails.
	Spec func() (config.Spec, error)

	Store    state.Store
	Provider provider.Provider
	Observer observe.Cluster
	Signals  forecast.Signals
	Drainer  act.Drainer
	Labeler  act.Labeler
	Notices  provider.Notices // nil: nobody reports interruptions
	Reporter Reporter         // nil: nobody is told
	Claims   *forecast.Claims // of all pools of the process; nil: pods are no other pool's

	// LetGo is called when nothing is left of a pool that is being deleted, by the process that leads;
	// it may be called more than once. nil: nothing waits for that.
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
	Events []journal.Event // what happened in this cycle, in order
	// Deletion is what is left of a pool that is being deleted, nil for one that is not.
	Deletion *Deletion
}

// NotDecided is the reason of a cycle that came to no decision, as the journal could not be read.
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

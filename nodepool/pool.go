package nodepool

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
)

// Pool runs one pool of workers. What it remembers beside the journal can be lost at any time: it makes decisions
// steadier, and nothing depends on it.
type Pool struct {
	options Options
	random  *rand.Rand

	spec     config.Spec // as read last
	specRead bool

	journal    journal
	observer   observer
	forecaster forecaster
	findings   findings

	after    after // what the last cycle leaves to the loop
	faults   int   // cycles in a row that went wrong
	turn     int   // number of the cycle in which this process acts
	woken    chan struct{}
	receives atomic.Bool // messages are received: this process leads, and not for show

	mu         sync.Mutex
	inbox      []provider.Message // that no cycle has looked at
	deferred   []provider.Message // that a cycle could do nothing with yet
	receiveErr error
}

// after is what a cycle leaves to the loop around it.
type after struct {
	began   time.Time
	open    bool      // something waits for its next step
	lost    bool      // a launch has failed, and waits for a substitute
	nextDue time.Time // when a pod falls due
}

// New returns a pool that does nothing until it is run or ticked.
func New(o Options) (*Pool, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	p := &Pool{
		options: o, random: rand.New(rand.NewPCG(o.Seed, 0)),
		journal:  journal{owner: o.Owner, now: o.Now, lease: lease{owner: o.Owner}, turn: make(chan struct{}, 1)},
		observer: observer{tracked: trackedInstances{}, capacities: map[string]*observedCapacity{}, homeless: homelessNodes{}},
		findings: findings{}, woken: make(chan struct{}, 1),
	}
	p.wire()
	return p, nil
}

// wire gives each phase the part of the options that it may use.
func (p *Pool) wire() {
	p.journal.store, p.journal.pool = p.options.Store, p.options.Name
	p.observer.cloud, p.observer.cluster = p.options.Provider, p.options.Observer
	p.forecaster = forecaster{p.options.Signals, p.options.Claims}
}

// Tick runs one cycle, without waiting: what takes longer is taken up again by the next one. It must not be called by two at once.
// The error is everything that went wrong; the decision holds all the same.
//
// A cycle has five phases, each a function of what those before it return: it observes, forecasts, plans, acts if this process leads,
// and reports.
func (p *Pool) Tick(ctx context.Context) (plan.Decision, error) {
	p.journal.begin()
	seen := observation{at: p.options.Now(), pool: p.options.Name, vanishGrace: p.options.VanishGrace}
	var load forecast
	var snapshot plan.Snapshot
	err := p.readSpec(&seen)
	if err == nil {
		err = p.observe(ctx, &seen)
		load = p.forecaster.forecast(ctx, &seen)
		snapshot = snapshotOf(&seen, load)
	}
	decision := p.plan(&seen, load, snapshot, err)
	var errs []error
	if err == nil && p.journal.leading {
		errs, err = p.act(ctx, &seen, load, snapshot, decision)
	}
	health := errors.Join(slices.Concat([]error{err, p.journal.slimmed}, seen.errs(), errs)...)
	p.after = after{began: seen.at, nextDue: load.nextDue}
	active := p.journal.leading && !p.spec.DryRun
	if active {
		r := p.journal.record
		p.after.open, p.after.lost = r.Open() || watches(r, seen.at), len(lost(r.Action)) > 0
	}
	p.receives.Store(active)
	p.report(ctx, CycleReport{
		Pool: p.options.Name, Generation: seen.spec.Generation, At: seen.at, Leading: p.journal.leading, DryRun: p.spec.DryRun,
		Decision: decision, Snapshot: snapshot, Record: p.journal.record, StartupTime: load.startup,
		Health: health, Events: p.journal.happened(err), Deletion: deletion(&seen, p.journal.record, decision),
	})
	return decision, health
}

// Release gives the lease back, so that another process need not wait for it to expire. Run does so by itself.
func (p *Pool) Release(ctx context.Context) error { return p.journal.release(ctx) }

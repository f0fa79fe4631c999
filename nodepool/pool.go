package nodepool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// Pool runs one pool of workers. What it remembers beside the journal can be lost at any time: it makes decisions
// steadier, and nothing depends on it.
type Pool struct {
	options Options
	random  *rand.Rand

	spec     Spec // as read last
	specRead bool

	lease     lease
	sightings sightings
	offers    []provider.Offer
	offersAt  time.Time
	proofs    map[string]*proof // by instance type
	decidedAt time.Time         // the last decision of this process while it led

	emptySince time.Time // since when nothing of the pool has been left, while this process leads; zero = something is

	strays   map[string]time.Time    // nodes with the mark of no open action, since when
	homeless map[string]homelessness // by node

	driftUnknown bool // it has been reported

	after  after // what the last tick leaves to the loop
	faults int   // ticks in a row that went wrong
	woken  chan struct{}
	hears  atomic.Bool // messages are received: this process leads, and not for show

	mu         sync.Mutex
	inbox      []provider.Message // that no tick has looked at
	deferred   []provider.Message // that a tick could do nothing with yet
	receiveErr error
}

// after is what a tick leaves to the loop around it.
type after struct {
	began   time.Time
	open    bool      // something waits for its next step
	nextDue time.Time // when a pod falls due
}

// New returns a pool that does nothing until it is run or ticked.
func New(o Options) (*Pool, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Pool{
		options: o, random: rand.New(rand.NewPCG(o.Seed, 0)),
		lease: lease{owner: o.Owner}, sightings: sightings{}, proofs: map[string]*proof{}, strays: map[string]time.Time{},
		homeless: map[string]homelessness{}, woken: make(chan struct{}, 1),
	}, nil
}

// Tick observes, decides and applies once, without waiting: what takes longer is taken up again by the next tick. It must
// not be called by two at once. The error is everything that went wrong; the decision holds all the same.
func (p *Pool) Tick(ctx context.Context) (plan.Decision, error) {
	t := p.newTick()
	err := t.run(ctx)
	p.hears.Store(t.leading && !t.spec.DryRun)
	p.after = after{began: t.now, open: t.leading && open(t.record) && !t.spec.DryRun, nextDue: t.nextDue}
	t.report(ctx, err)
	return t.decision, err
}

// backoff is a random wait that doubles with each try.
func (p *Pool) backoff(try int, least, most time.Duration) time.Duration {
	wait := least
	for i := 1; i < try && wait < most; i++ {
		wait *= 2
	}
	wait = min(wait, most)
	return wait/2 + time.Duration(p.random.Int64N(int64(wait/2)+1))
}

// Release gives the lease back, so that another process need not wait for it to expire. Run does so by itself.
func (p *Pool) Release(ctx context.Context) error {
	r, err := p.options.Store.Load(ctx, p.options.Name)
	if err != nil {
		return fmt.Errorf("release the lease: %w", err)
	}
	if r.Owner != p.options.Owner {
		return nil
	}
	r.Owner = ""
	p.lease.renewed = time.Time{}
	if _, err := p.options.Store.Save(ctx, p.options.Name, r); err != nil && !errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("release the lease: %w", err)
	}
	return nil
}

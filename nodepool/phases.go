package nodepool

import (
	"context"
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
)

// readSpec reads the configuration. A broken one leaves the one before.
func (p *Pool) readSpec(o *observation) error {
	s, err := p.options.Spec()
	switch {
	case err == nil:
		p.spec, p.specRead = s, true
	case !p.specRead:
		return fmt.Errorf("read the configuration: %w", err)
	default:
		o.specErr = fmt.Errorf("read the configuration: %w", err)
	}
	o.spec = p.spec
	return nil
}

// observe is the first phase. It lists the instances before it reads the journal and the cluster: what those know beyond the list
// has happened since. Of the journal it writes the lease alone; an error means that nobody may act.
func (p *Pool) observe(ctx context.Context, o *observation) error {
	p.observer.list(ctx, o)
	j := &p.journal
	err := j.load(ctx, o.spec)
	o.record, o.decidedAt, o.leading, o.tookOver = j.record, j.lastDecided(), j.leading, j.tookOver
	if o.leading && o.tookOver && j.record.Version > 1 {
		p.observer.list(ctx, o) // the first list may be older than the last acts of the process that led before
	}
	p.observer.see(ctx, o)
	if err == nil && o.leading {
		o.messages, o.messagesErr = p.messages()
	}
	if o.spec.DryRun {
		o.messages = nil // the queue delivers again what was not deleted
	}
	return err
}

// plan is the third phase. It decides, unless the journal is not known, and keeps what makes later decisions cheaper and tells other
// pools which pods are this one's.
func (p *Pool) plan(o *observation, f forecast, s plan.Snapshot, err error) plan.Decision {
	if !p.journal.loaded {
		return plan.Decision{At: o.at, Step: plan.Hold, Reason: NotDecided, Message: fmt.Sprintf("No change: %v", err)}
	}
	d := plan.Decide(s)
	p.observer.homeless.remember(d.Refused, o.at)
	if p.options.Claims != nil && o.cluster != nil {
		p.options.Claims.make(p.options.Name, claimOf(o, f, d))
	}
	return d
}

// act is the fourth phase. It returns the errors of parts that did not keep others from being done, and the one that ended it early.
func (p *Pool) act(ctx context.Context, seen *observation, load forecast, s plan.Snapshot, d plan.Decision) (errs []error, err error) {
	t := &executor{
		journal: &p.journal, seen: seen, forecast: load, snapshot: s, decision: d, notices: p.options.Notices, random: p.random,
		bindGrace: p.options.BindGrace, maxBindGrace: p.options.MaxBindGrace, hasMessages: p.hasMessages,
		began: p.options.Now(), labelled: map[string]bool{}, turn: p.turn,
	}
	p.turn++
	t.tasks = &lockstep{save: p.journal.save}
	t.guard = leaseGuard{
		tasks: t.tasks, volumes: newVolumes(),
		provider: p.options.Provider, drainer: p.options.Drainer, labeler: p.options.Labeler, letGo: p.options.LetGo,
		left: func() time.Duration { return p.journal.lease.left(p.options.Now()) },
	}
	err = t.lead(ctx)
	p.deferMessages(t.deferred...)
	p.observer.ended(t.ended)
	if err == nil && !seen.spec.DryRun && seen.complete() {
		for _, e := range p.findings.news(d.Upkeep.Findings) {
			t.event(e)
		}
	}
	return t.errs, err
}

// report is the fifth phase.
func (p *Pool) report(ctx context.Context, r CycleReport) {
	if p.options.Reporter != nil {
		p.options.Reporter.Report(ctx, r)
	}
}

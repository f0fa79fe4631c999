package nodepool

import (
	"context"
	"fmt"

	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/plan"
)

// readSpec reads the configuration. A broken one leaves the one before.
func (p *Pool) readSpec(o *observe.Observation) error {
	s, err := p.options.Spec()
	switch {
	case err == nil:
		p.spec, p.specRead = s, true
	case !p.specRead:
		return fmt.Errorf("read the configuration: %w", err)
	default:
		o.SpecErr = fmt.Errorf("read the configuration: %w", err)
	}
	o.Spec = p.spec
	return nil
}

// observe is the first phase. It lists the instances before it reads the journal and the cluster: what those know beyond the list
// has happened since. Of the journal it writes the lease alone; an error means that nobody may act.
func (p *Pool) observe(ctx context.Context, o *observe.Observation) error {
	p.observer.List(ctx, o)
	j := p.journal
	err := j.Load(ctx, o.Spec)
	o.Record, o.DecidedAt, o.Leading, o.TookOver = j.Record, j.LastDecided(), j.Leading, j.TookOver
	if o.Leading && o.TookOver && j.Record.Version > 1 {
		p.observer.List(ctx, o) // the first list may be older than the last acts of the process that led before
	}
	p.observer.See(ctx, o)
	if err == nil && o.Leading {
		o.Messages, o.MessagesErr = p.messages()
	}
	if o.Spec.DryRun {
		o.Messages = nil // the queue delivers again what was not deleted
	}
	return err
}

// plan is the third phase. It decides, unless the journal is not known, and keeps what makes later decisions cheaper and tells other
// pools which pods are this one's.
func (p *Pool) plan(o *observe.Observation, f forecast.Forecast, s plan.Snapshot, err error) plan.Decision {
	if !p.journal.Loaded {
		return plan.Decision{At: o.At, Step: plan.Hold, Reason: NotDecided, Message: fmt.Sprintf("No change: %v", err)}
	}
	d := plan.Decide(s)
	p.observer.RememberRefused(d.Refused, o.At)
	if p.options.Claims != nil && o.Cluster != nil {
		p.options.Claims.Decided(o, f, d)
	}
	return d
}

// act is the fourth phase. It returns the errors of parts that did not keep others from being done, and the one that
// ended it early.
func (p *Pool) act(ctx context.Context, seen *observe.Observation, load forecast.Forecast, s plan.Snapshot, d plan.Decision) (errs []error, err error) {
	r := p.actor.Act(ctx, act.Cycle{Seen: seen, Forecast: load, Snapshot: s, Decision: d})
	p.deferMessages(r.Deferred...)
	p.observer.MarkEnded(r.Ended)
	if r.Err == nil && !seen.Spec.DryRun && seen.Complete() {
		for _, e := range p.findings.news(d.Upkeep.Findings) {
			p.journal.Event(e)
		}
	}
	return r.Errs, r.Err
}

// report is the fifth phase.
func (p *Pool) report(ctx context.Context, r CycleReport) {
	if p.options.Reporter != nil {
		p.options.Reporter.Report(ctx, r)
	}
}

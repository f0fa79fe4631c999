package nodepool

import (
	"context"
	"sync"
	"time"

	"github.com/foresail/foresail/nodepool/act"
)

const (
	// leastPause is between cycles however often they are asked for.
	leastPause = time.Second
	// releaseTimeout bounds what giving the lease back may take when the process ends.
	releaseTimeout = 5 * time.Second
	// receivePause is between tries to receive messages that fail.
	receivePause = 5 * time.Second
	// stepsInTrouble is how many steps of an open action may pass until the next cycle after one that
	// went wrong, also while messages wait: drains have deadlines, whatever else is in trouble.
	stepsInTrouble = 4
	// leastReceive is what a queue is left alone after it had nothing at once, and how often a process that does not lead
	// looks whether it does: a notice leaves two minutes.
	leastReceive = time.Second
	// firstInterval is that of cycles until one has read the configuration.
	firstInterval = 15 * time.Second
)

// Run cycles until ctx ends: at each interval, more often while an action is open, and at once when
// there is something to see. It then gives the lease back. Errors of cycles are told and tried
// again; Run returns that of giving the lease back.
func (p *Pool) Run(ctx context.Context) error {
	var running sync.WaitGroup
	if p.options.Notices != nil {
		running.Go(func() { p.receive(ctx) })
	}
	running.Go(func() { p.keepLease(ctx) })
	p.loop(ctx)
	running.Wait()
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	return p.Release(release)
}

func (p *Pool) loop(ctx context.Context) {
	for ctx.Err() == nil {
		_, err := p.Tick(ctx)
		timer := time.NewTimer(p.pause(err))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-p.options.Observer.Wake():
			sleep(ctx, p.rest())
		case <-p.woken:
			sleep(ctx, p.rest())
		}
		timer.Stop()
	}
}

// pause is how long the loop waits after a cycle.
func (p *Pool) pause(err error) time.Duration {
	interval := p.spec.Interval
	if interval <= 0 {
		interval = firstInterval
	}
	now := p.options.Now()
	var next time.Time
	switch {
	case err != nil:
		most := interval
		if p.after.open || p.inbox.hasDeferred() {
			most = min(interval, stepsInTrouble*p.options.StepInterval)
		}
		p.faults++
		next = now.Add(act.Backoff(p.random, p.faults, p.options.StepInterval, most))
	case p.after.lost:
		next = now // at once, as far as cycles may follow each other
	case p.after.open:
		next = p.after.began.Add(p.options.StepInterval)
	default:
		next = p.after.began.Add(interval)
	}
	if err == nil {
		p.faults = 0
	}
	if due := p.after.nextDue; !due.IsZero() && due.Before(next) {
		next = due
	}
	return max(leastPause, next.Sub(now))
}

// rest is how long an early cycle must wait.
func (p *Pool) rest() time.Duration {
	return p.after.began.Add(leastPause).Sub(p.options.Now())
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// wake asks for a cycle.
func (p *Pool) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// keepLease renews the lease between cycles and during long ones, and asks for a cycle when another process has lost
// it or given it back. Errors are those of the journal, which cycles report.
func (p *Pool) keepLease(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, p.journal.KeepAfter())
		if free, err := p.journal.Keep(ctx); err == nil && free {
			p.wake()
		}
	}
}

// receive takes messages while this process leads; messages that another takes would be hidden from the one that does.
func (p *Pool) receive(ctx context.Context) {
	for ctx.Err() == nil {
		if !p.receives.Load() {
			sleep(ctx, leastReceive)
			continue
		}
		began := p.options.Now()
		messages, err := p.options.Notices.Receive(ctx)
		if len(messages) > 0 {
			p.Notify(messages...)
		}
		p.inbox.setReceiveErr(err)
		switch {
		case err != nil:
			sleep(ctx, receivePause)
		case len(messages) == 0:
			sleep(ctx, began.Add(leastReceive).Sub(p.options.Now()))
		}
	}
}

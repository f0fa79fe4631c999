package nodepool

import (
	"context"
	"sync"
	"time"

	"github.com/foresail/foresail/nodepool/act"
)

const (
	// minPause is the shortest pause between cycles.
	minPause = time.Second
	// releaseTimeout bounds the release of the lease when the process ends.
	releaseTimeout = 5 * time.Second
	// receivePause is the pause after a failed try to receive messages.
	receivePause = 5 * time.Second
	// stepsInTrouble bounds the wait for the next cycle after one with errors, in steps of an open
	// action, and while messages wait: drains have deadlines even if something else fails.
	stepsInTrouble = 4
	// minReceivePause is the pause after a queue had no message, and the interval in which a process that
	// does not lead checks whether it does: a notice leaves two minutes.
	minReceivePause = time.Second
	// firstInterval is the interval of cycles until one has read the configuration.
	firstInterval = 15 * time.Second
)

// Run runs cycles until ctx ends: at each interval, more often while an action is open, and at once
// after an event. Then it releases the lease. Errors of cycles are reported and retried; Run
// returns that of the release.
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
			sleep(ctx, p.earlyWait())
		case <-p.woken:
			sleep(ctx, p.earlyWait())
		}
		timer.Stop()
	}
}

// pause returns the wait after a cycle.
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
		if p.last.open || p.inbox.hasDeferred() {
			most = min(interval, stepsInTrouble*p.options.StepInterval)
		}
		p.failedCycles++
		next = now.Add(act.Backoff(p.random, p.failedCycles, p.options.StepInterval, most))
	case p.last.lost:
		next = now // at once, as far as the shortest pause allows
	case p.last.open:
		next = p.last.began.Add(p.options.StepInterval)
	default:
		next = p.last.began.Add(interval)
	}
	if err == nil {
		p.failedCycles = 0
	}
	if due := p.last.nextDue; !due.IsZero() && due.Before(next) {
		next = due
	}
	return max(minPause, next.Sub(now))
}

// earlyWait returns the wait of an early cycle.
func (p *Pool) earlyWait() time.Duration {
	return p.last.began.Add(minPause).Sub(p.options.Now())
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

// wake requests a cycle.
func (p *Pool) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// keepLease renews the lease between cycles and during long ones, and requests a cycle when another
// process has lost or released it. Its errors are those of the journal, which cycles report.
func (p *Pool) keepLease(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, p.journal.KeepAfter())
		if free, err := p.journal.Keep(ctx); err == nil && free {
			p.wake()
		}
	}
}

// receive receives messages while this process leads: messages that another process receives would
// be hidden from the leader.
func (p *Pool) receive(ctx context.Context) {
	for ctx.Err() == nil {
		if !p.receives.Load() {
			sleep(ctx, minReceivePause)
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
			sleep(ctx, began.Add(minReceivePause).Sub(p.options.Now()))
		}
	}
}

package resource

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/source"
)

// retryFirst is how soon a list is tried again after its first failure.
const retryFirst = time.Second

// poller lists the PodMetrics of a namespace, once an interval.
type poller struct {
	source *Source
	key    pollKey
	ctx    context.Context
	cancel context.CancelFunc

	mu            sync.Mutex // held while subscriptions are told, so that the newest list is the last they hear of
	subscriptions []*subscription
	latest        *listing
}

func newPoller(s *Source, key pollKey) *poller {
	p := &poller{source: s, key: key}
	p.ctx, p.cancel = context.WithCancel(s.base)
	return p
}

// join tells a subscription of every list from now on, and of the last there was.
func (p *poller) join(u *subscription) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscriptions = append(p.subscriptions, u)
	if p.latest != nil {
		u.take(p.latest)
	}
}

// leave ends what join began and returns how many subscriptions are left.
func (p *poller) leave(u *subscription) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscriptions = slices.DeleteFunc(p.subscriptions, func(x *subscription) bool { return x == u })
	return len(p.subscriptions)
}

func (p *poller) publish(l *listing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest = l
	for _, u := range p.subscriptions {
		u.take(l)
	}
}

// run lists at once, then once an interval, until the poller is cancelled.
func (p *poller) run() {
	select {
	case <-p.ctx.Done():
		return
	case <-p.source.running:
	}
	failures := 0
	for {
		l := p.source.list(p.ctx, p.key.namespace)
		if p.ctx.Err() != nil {
			return
		}
		p.publish(l)
		wait := p.key.untilNext(p.source.options.Now())
		if failures++; l.err != nil {
			wait = source.Backoff(failures, retryFirst, p.source.options.MaxBackoff)
		} else {
			failures = 0
		}
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// untilNext returns how long it is to the next time of a key. Its times are an interval apart on the clock, so that
// replicas list at the same time, at a phase that is the namespace's own, so that not all namespaces are listed at once.
func (k pollKey) untilNext(now time.Time) time.Duration {
	return source.UntilNext(time.Duration(now.UnixNano()), source.Phase(k.interval, k.namespace), k.interval)
}

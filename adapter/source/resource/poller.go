package resource

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/metricsapi"
)

// retryFirst is the time until the next list after the first failure.
const retryFirst = time.Second

// poller lists the PodMetrics of a namespace once per interval.
type poller struct {
	source *Source
	key    pollKey
	cancel context.CancelFunc

	mu            sync.Mutex // held while subscriptions take a list, so that they take the newest last
	subscriptions []*subscription
	latest        *listing
}

func newPoller(s *Source, key pollKey) *poller {
	return &poller{source: s, key: key, cancel: func() {}}
}

// join gives a subscription the last list, and every list from now on.
func (p *poller) join(u *subscription) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscriptions = append(p.subscriptions, u)
	if p.latest != nil {
		u.take(p.latest)
	}
}

// leave undoes join and returns how many subscriptions are left.
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

// run lists at once, then once per interval, until the context ends.
func (p *poller) run(ctx context.Context) {
	failures := 0
	for {
		l := p.source.list(ctx, p.key.namespace)
		if ctx.Err() != nil {
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
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// untilNext returns the time until the next list of a key. The times are an interval apart on the clock, so that
// replicas list at the same time, at a phase of the namespace, so that namespaces are spread over the interval.
func (k pollKey) untilNext(now time.Time) time.Duration {
	return source.UntilNext(time.Duration(now.UnixNano()), source.Phase(k.interval, k.namespace), k.interval)
}

// listing is the outcome of one list: PodMetrics by the names of their pods, or the error.
type listing struct {
	at   time.Time
	pods map[string]*v1beta1.PodMetrics
	err  error
}

// list lists the PodMetrics of a namespace as soon as a slot is free.
func (s *Source) list(ctx context.Context, namespace string) *listing {
	select {
	case <-ctx.Done():
		return &listing{err: ctx.Err()}
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	}
	limited, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	began := s.options.Now()
	items, err := s.options.Client.PodMetricses(namespace).List(limited, metav1.ListOptions{})
	l := &listing{at: s.options.Now()}
	if ctx.Err() != nil {
		return l // no longer needed
	}
	s.telemetry.duration.Observe(l.at.Sub(began).Seconds())
	if err != nil {
		asked := metricsapi.List{
			What: fmt.Sprintf("the PodMetrics of the namespace %q", namespace), Timeout: s.options.Timeout,
			Grant: "the resource pods of metrics.k8s.io", Where: fmt.Sprintf("in the namespace %q", namespace),
		}
		failure := asked.Explain(err, limited.Err() != nil)
		s.telemetry.lists[failure.Result].Inc()
		l.err = failure
		return l
	}
	s.telemetry.lists[metricsapi.Success].Inc()
	l.pods = make(map[string]*v1beta1.PodMetrics, len(items.Items))
	for i := range items.Items {
		l.pods[items.Items[i].Name] = &items.Items[i]
	}
	return l
}

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

// idle is the interval of a poller without subscriptions, which is about to be cancelled.
const idle = time.Hour

// poller lists the PodMetrics of a namespace, as often as the most frequent of its subscriptions asks for.
type poller struct {
	source      *Source
	namespace   string
	cancel      context.CancelFunc
	rescheduled chan struct{} // has something after the interval may have changed

	mu            sync.Mutex // held while subscriptions take a list, so that they take the newest last
	subscriptions []*subscription
	latest        *listing
}

func newPoller(s *Source, namespace string) *poller {
	return &poller{source: s, namespace: namespace, cancel: func() {}, rescheduled: make(chan struct{}, 1)}
}

// join gives a subscription the last list, and every list from now on.
func (p *poller) join(u *subscription) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscriptions = append(p.subscriptions, u)
	p.reschedule()
	if p.latest != nil {
		u.take(p.latest)
	}
}

// leave undoes join and returns how many subscriptions are left.
func (p *poller) leave(u *subscription) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscriptions = slices.DeleteFunc(p.subscriptions, func(x *subscription) bool { return x == u })
	p.reschedule()
	return len(p.subscriptions)
}

func (p *poller) reschedule() {
	select {
	case p.rescheduled <- struct{}{}:
	default: // one is enough
	}
}

func (p *poller) publish(l *listing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest = l
	for _, u := range p.subscriptions {
		u.take(l)
	}
}

// run lists at once, then at every interval, until the context ends.
func (p *poller) run(ctx context.Context) {
	failures := 0
	for {
		l := p.source.list(ctx, p.namespace)
		if ctx.Err() != nil {
			return
		}
		p.publish(l)
		if failures++; l.err == nil {
			failures = 0
		}
		if !p.wait(ctx, failures) {
			return
		}
	}
}

// wait waits until the next list is due after so many failures in a row, and returns false if the context ends first.
func (p *poller) wait(ctx context.Context, failures int) bool {
	if failures > 0 {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(source.Backoff(failures, retryFirst, p.source.options.MaxBackoff)):
			return true
		}
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-p.rescheduled:
		case <-time.After(p.untilNext(p.source.options.Now())):
			return true
		}
	}
}

// untilNext returns the time until the next list. The times are an interval apart on the clock, so
// that replicas list at the same time, at a phase of the namespace, so that namespaces are spread
// over the interval.
func (p *poller) untilNext(now time.Time) time.Duration {
	interval := p.interval()
	return source.UntilNext(time.Duration(now.UnixNano()), source.Phase(interval, p.namespace), interval)
}

// interval returns the shortest of the subscriptions.
func (p *poller) interval() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	shortest := idle
	for _, u := range p.subscriptions {
		shortest = min(shortest, u.config.Interval)
	}
	return shortest
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
	took := l.at.Sub(began).Seconds()
	if err != nil {
		asked := metricsapi.List{
			What: fmt.Sprintf("the PodMetrics of the namespace %q", namespace), Timeout: s.options.Timeout,
			Grant: "the resource pods of metrics.k8s.io", Where: fmt.Sprintf("in the namespace %q", namespace),
		}
		failure := asked.Explain(err, limited.Err() != nil)
		s.telemetry.lists[failure.Result].Observe(took)
		l.err = failure
		return l
	}
	s.telemetry.lists[metricsapi.Success].Observe(took)
	l.pods = make(map[string]*v1beta1.PodMetrics, len(items.Items))
	for i := range items.Items {
		l.pods[items.Items[i].Name] = &items.Items[i]
	}
	return l
}

// Package resource is the source that reads the usage of pods from metrics.k8s.io, which metrics-server serves.
//
// Use it if there is no other source. A value is the mean over 15 s or more, and is served at the
// end of that time, so that changes show later than with any other source. One list of a namespace
// serves all its PredictedMetrics, as often as the most frequent of them asks for.
package resource

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
)

// Fleet is the pods of one target, which package podtracker tracks.
type Fleet = podtracker.IndexedPods

// Source reads the usage of pods from metrics.k8s.io. It is safe for concurrent use.
type Source struct {
	options   Options
	telemetry *telemetry
	slots     chan struct{}
	polling   sync.WaitGroup

	mu            sync.Mutex
	start         func(*poller) // while Run runs, else nil
	subscriptions map[types.NamespacedName]*subscription
	pollers       map[string]*poller // by namespace
}

// New returns a Source that reads nothing yet.
func New(o Options) *Source {
	o = o.withDefaults()
	return &Source{
		options:       o,
		telemetry:     newTelemetry(o.Registerer),
		slots:         make(chan struct{}, o.Concurrency),
		subscriptions: map[types.NamespacedName]*subscription{},
		pollers:       map[string]*poller{},
	}
}

// Run reads until ctx ends, and returns when no list is running any more. It can be called once.
func (s *Source) Run(ctx context.Context) error {
	s.mu.Lock()
	s.start = func(p *poller) {
		ctx, cancel := context.WithCancel(ctx)
		p.cancel = cancel
		s.polling.Go(func() { p.run(ctx) })
	}
	for _, p := range s.pollers {
		s.start(p)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.start = nil // no poller starts after the wait
	s.mu.Unlock()
	s.polling.Wait()
	return nil
}

// Set reads the active instances of a fleet, in the namespace of the key, for a sink, as c says, until the next Set or
// Remove of the key.
func (s *Source) Set(key types.NamespacedName, c Config, fleet Fleet, sink source.Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.subscriptions[key]
	if old != nil && old.config == c && old.fleet == fleet && old.sink == sink {
		return
	}
	added := newSubscription(s, c, fleet, sink)
	s.subscriptions[key] = added
	s.attachSubscription(added, key.Namespace)
	s.detach(old) // after the other has begun, so that a poller of both goes on
}

// Remove stops reading for a key. The sink is not called any more when it returns.
func (s *Source) Remove(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.subscriptions[key]
	delete(s.subscriptions, key)
	s.detach(old)
}

// attachSubscription gives a subscription the lists of a namespace. The caller holds the lock.
func (s *Source) attachSubscription(u *subscription, namespace string) {
	p := s.pollers[namespace]
	if p == nil {
		p = newPoller(s, namespace)
		s.pollers[namespace] = p
		if s.start != nil {
			s.start(p)
		}
	}
	u.poller = p
	p.join(u)
}

// detach ends a subscription, which may be nil, and its poller if it was the last one. The caller holds the lock.
func (s *Source) detach(u *subscription) {
	if u == nil {
		return
	}
	u.end()
	if u.poller.leave(u) == 0 {
		u.poller.cancel()
		delete(s.pollers, u.poller.namespace)
	}
}

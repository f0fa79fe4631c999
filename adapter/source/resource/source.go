package resource

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/instances"
	"github.com/foresail/foresail/adapter/source"
)

// Fleet is the pods of one target, as package instances follows them.
type Fleet = instances.RosterFleet

// Source reads the usage of pods from metrics.k8s.io. It is safe for concurrent use.
type Source struct {
	options   Options
	telemetry *telemetry
	slots     chan struct{}
	base      context.Context // of all pollers
	stop      context.CancelFunc
	running   chan struct{} // closed when Run begins
	polling   sync.WaitGroup

	mu            sync.Mutex
	ended         bool
	subscriptions map[types.NamespacedName]*subscription
	pollers       map[pollKey]*poller
}

// New returns a Source that reads nothing yet.
func New(o Options) *Source {
	o = o.withDefaults()
	s := &Source{
		options:       o,
		telemetry:     newTelemetry(o.Registerer),
		slots:         make(chan struct{}, o.Concurrency),
		running:       make(chan struct{}),
		subscriptions: map[types.NamespacedName]*subscription{},
		pollers:       map[pollKey]*poller{},
	}
	s.base, s.stop = context.WithCancel(context.Background())
	return s
}

// Run reads until ctx ends, and returns when no list is under way any more. It can be called once.
func (s *Source) Run(ctx context.Context) error {
	close(s.running)
	<-ctx.Done()
	s.stop()
	s.mu.Lock()
	s.ended = true // no poller begins behind the wait
	s.mu.Unlock()
	s.polling.Wait()
	return nil
}

// Set has the active instances of a fleet in the namespace of the key read as c says, and the samples taken to a sink,
// until it is set otherwise or removed.
func (s *Source) Set(key types.NamespacedName, c Config, fleet Fleet, sink source.Sink) error {
	if err := c.validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.subscriptions[key]
	if old != nil && old.config == c && old.fleet == fleet && old.sink == sink {
		return nil
	}
	added := newSubscription(s, c, fleet, sink)
	s.subscriptions[key] = added
	s.attach(added, pollKey{key.Namespace, c.Interval})
	s.detach(old) // after the other has begun, so that a poller of both goes on
	return nil
}

// Remove ends the reading for a key. The sink is not called any more when it returns.
func (s *Source) Remove(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.subscriptions[key]
	delete(s.subscriptions, key)
	s.detach(old)
}

// attach has a subscription told of the lists of a key. The caller holds the lock.
func (s *Source) attach(u *subscription, key pollKey) {
	p := s.pollers[key]
	if p == nil {
		p = newPoller(s, key)
		s.pollers[key] = p
		s.telemetry.pollers.Inc()
		if !s.ended {
			s.polling.Go(p.run)
		}
	}
	u.poller = p
	p.join(u)
}

// detach ends a subscription, which may be nil, and its poller if it was the last. The caller holds the lock.
func (s *Source) detach(u *subscription) {
	if u == nil {
		return
	}
	u.end()
	if u.poller.leave(u) == 0 {
		u.poller.cancel()
		delete(s.pollers, u.poller.key)
		s.telemetry.pollers.Dec()
	}
}

// pollKey is what subscriptions share a list by.
type pollKey struct {
	namespace string
	interval  time.Duration
}

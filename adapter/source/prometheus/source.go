package prometheus

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/instances"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/promapi"
)

// Fleet is the pods of one target, as package instances follows them.
type Fleet interface {
	instances.RosterFleet
	// UnreadySince returns the newest time at which a pod that has not been Ready while it was followed ceased to be.
	UnreadySince() time.Time
}

var _ Fleet = (*instances.Fleet)(nil)

// Source reads from Prometheus servers. It is safe for concurrent use.
type Source struct {
	options   Options
	connector *promapi.Connector
	telemetry *telemetry
	asking    sync.WaitGroup // the goroutines of groups

	mu            sync.Mutex
	running       context.Context // that of Run, nil before and after it
	subscriptions map[types.NamespacedName]*subscription
	groups        map[groupKey]*group
	servers       map[string]*server // by address
}

// New returns a Source that reads nothing yet.
func New(o Options) *Source { return newSource(o.withDefaults(), nil) }

// newSource returns one that has a transport instead of those that the servers' configuration makes, if it is not nil.
func newSource(o Options, transport http.RoundTripper) *Source {
	return &Source{
		options: o, telemetry: newTelemetry(o.Registerer),
		connector: promapi.NewConnector(promapi.Options{
			Servers: o.Servers, MaxSeries: o.MaxSeries, MaxBytes: o.MaxBytes, UserAgent: o.UserAgent, Transport: transport,
		}),
		subscriptions: map[types.NamespacedName]*subscription{},
		groups:        map[groupKey]*group{},
		servers:       map[string]*server{},
	}
}

// Run reads until ctx ends, and returns when no query is under way any more. It can be called once.
func (s *Source) Run(ctx context.Context) error {
	s.mu.Lock()
	s.running = ctx
	for _, g := range s.groups {
		s.begin(g)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.running = nil
	s.mu.Unlock()
	s.asking.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.servers {
		v.client.CloseIdleConnections()
	}
	return nil
}

// Set has samples read as c says and those of a fleet's pods taken to a sink, from now until it is set otherwise or
// removed.
func (s *Source) Set(key types.NamespacedName, c Config, fleet Fleet, sink source.Sink) error {
	c.normalize()
	if err := c.validate(); err != nil {
		return err
	}
	if err := s.options.Servers.Permit(c.Address); err != nil {
		return err
	}
	s.mu.Lock()
	old := s.subscriptions[key]
	if old.same(c, fleet, sink) {
		s.mu.Unlock()
		return nil
	}
	g, err := s.group(c.key())
	if err != nil {
		s.mu.Unlock()
		return err
	}
	added := newSubscription(g, key.Namespace, c, fleet, sink)
	s.subscriptions[key] = added
	g.join(added)
	s.leave(old) // after the other has joined, so that a group of both stays
	s.mu.Unlock()
	old.end()
	return nil
}

// Remove ends the reading for a key. The sink is not called any more when it returns.
func (s *Source) Remove(key types.NamespacedName) {
	s.mu.Lock()
	old := s.subscriptions[key]
	delete(s.subscriptions, key)
	s.leave(old)
	s.mu.Unlock()
	old.end()
}

// group returns the group of a key, which it makes if there is none. The caller holds the lock.
func (s *Source) group(key groupKey) (*group, error) {
	if g := s.groups[key]; g != nil {
		return g, nil
	}
	v := s.servers[key.address]
	if v == nil {
		var err error
		if v, err = s.connect(key.address); err != nil {
			return nil, err
		}
		s.servers[key.address] = v
	}
	v.groups++
	g := newGroup(s, key, v)
	s.groups[key] = g
	s.telemetry.groups.Inc()
	s.begin(g)
	return g, nil
}

// begin has a group ask while Run runs. The caller holds the lock.
func (s *Source) begin(g *group) {
	if s.running == nil || s.running.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.running)
	g.cancel = cancel
	s.asking.Go(func() {
		defer cancel()
		g.run(ctx)
	})
}

// leave takes a subscription, which may be nil, out of its group, and ends a group that has none left. The caller
// holds the lock.
func (s *Source) leave(u *subscription) {
	if u == nil || !u.group.part(u) {
		return
	}
	g := u.group
	delete(s.groups, g.key)
	s.telemetry.groups.Dec()
	g.cancel()
	if g.server.groups--; g.server.groups == 0 {
		delete(s.servers, g.key.address)
		g.server.client.CloseIdleConnections()
	}
}

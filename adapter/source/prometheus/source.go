// Package prometheus is the source that reads samples from Prometheus servers and others that serve the same HTTP API.
//
// It queries raw range vectors, so that samples keep the times at which they were scraped.
// PredictedMetrics of a namespace with the same query, server and interval form a group, which
// sends one query for all; each takes the series of its own pods from the answer. The first answer
// covers the window, so that there is a forecast right after a restart; later answers add new
// samples.
//
// A query selects series of the namespace of its PredictedMetrics alone: a matcher for the label
// that the operator names is added to it, and series of the answer that are not of the namespace
// are dropped.
//
// The server's clock is the current time. If it is ahead, samples are from the future, and the sink rejects them.
package prometheus

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/internal/share"
)

// Fleet is the pods of one target, which package podtracker tracks.
type Fleet interface {
	podtracker.IndexedPods
	// UnreadySince returns the newest time at which a pod ceased to be Ready that was not Ready while it was tracked.
	UnreadySince() time.Time
	// PodState returns what is known of a pod of the namespace, of the target or not.
	PodState(name string) podtracker.PodState
}

var _ Fleet = (*podtracker.TargetPods)(nil)

// Source reads from Prometheus servers. It is safe for concurrent use.
type Source struct {
	options   Options
	connector *promapi.Connector
	telemetry *telemetry
	asking    sync.WaitGroup // the goroutines of groups

	mu            sync.Mutex
	start         func(*group) // while Run runs, else nil
	subscriptions map[types.NamespacedName]*subscription
	groups        map[groupKey]*group
	servers       map[string]*server // by address
}

// New returns a Source that reads nothing yet.
func New(o Options) *Source { return newSource(o.withDefaults(), nil) }

// newSource returns a Source with a transport that replaces those of the servers' configuration, unless it is nil.
func newSource(o Options, transport http.RoundTripper) *Source {
	return &Source{
		options: o, telemetry: newTelemetry(o.Registerer),
		connector: promapi.NewConnector(promapi.Options{
			Servers: o.Servers, MaxSeries: o.MaxSeries, MaxBytes: o.MaxBytes, MaxMemory: o.MaxMemory,
			UserAgent: o.UserAgent, Transport: transport,
		}),
		subscriptions: map[types.NamespacedName]*subscription{},
		groups:        map[groupKey]*group{},
		servers:       map[string]*server{},
	}
}

// Run reads until ctx ends, and returns when no query is running any more. It can be called once.
func (s *Source) Run(ctx context.Context) error {
	s.mu.Lock()
	s.start = func(g *group) {
		ctx, cancel := context.WithCancel(ctx)
		g.cancel = cancel
		s.asking.Go(func() {
			defer cancel()
			g.run(ctx)
		})
	}
	for _, g := range s.groups {
		s.start(g)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.start = nil // no group starts after the wait
	servers := slices.Collect(maps.Values(s.servers))
	s.mu.Unlock()
	s.asking.Wait()
	for _, v := range servers {
		v.client.CloseIdleConnections()
	}
	return nil
}

// Set reads samples as c says, and gives those of a fleet's pods to a sink, until the next Set or Remove of the key.
func (s *Source) Set(key types.NamespacedName, c Config, fleet Fleet, sink source.Sink) error {
	c.normalize()
	limited := c.limit(key.Namespace, s.options.Servers.Tenancy(c.Address))
	if err := errors.Join(c.validate(), limited); err != nil {
		return err
	}
	if err := s.options.Servers.Permit(c.Address); err != nil {
		return err
	}
	var client *promapi.Client
	s.mu.Lock()
	for s.servers[c.Address] == nil && client == nil { // connecting reads files, for which the lock is not held
		s.mu.Unlock()
		var err error
		if client, err = s.connector.Connect(c.Address); err != nil {
			return err
		}
		s.mu.Lock()
	}
	old := s.subscriptions[key]
	if old.same(c, fleet, sink) {
		s.mu.Unlock()
		return nil
	}
	g := s.group(c.key(key.Namespace), client)
	added := newSubscription(g, c, fleet, sink)
	s.subscriptions[key] = added
	g.join(added)
	unused := s.leave(old) // after the other has joined, so that a group of both stays
	s.mu.Unlock()
	unused.close()
	old.end()
	return nil
}

// Remove stops reading for a key. The sink is not called any more when it returns.
func (s *Source) Remove(key types.NamespacedName) {
	s.mu.Lock()
	old := s.subscriptions[key]
	delete(s.subscriptions, key)
	unused := s.leave(old)
	s.mu.Unlock()
	unused.close()
	old.end()
}

// group returns the group of a key, which it makes if there is none. A client is required if its
// server is new. The caller holds the lock.
func (s *Source) group(key groupKey, client *promapi.Client) *group {
	if g := s.groups[key]; g != nil {
		return g
	}
	v := s.servers[key.address]
	if v == nil {
		v = &server{client: client, slots: share.NewPool(int64(s.options.Concurrency), 0), history: share.NewPool(1, 0)}
		s.servers[key.address] = v
	}
	v.groups++
	g := newGroup(s, key, v)
	s.groups[key] = g
	if s.start != nil {
		s.start(g)
	}
	return g
}

// leave takes a subscription, which may be nil, out of its group, and ends a group that has none left. It returns the
// server if no other group queries it, else nil. The caller holds the lock.
func (s *Source) leave(u *subscription) *server {
	if u == nil || !u.group.part(u) {
		return nil
	}
	g := u.group
	delete(s.groups, g.key)
	g.cancel()
	if g.server.groups--; g.server.groups > 0 {
		return nil
	}
	delete(s.servers, g.key.address)
	return g.server
}

package remotewrite

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/source"
)

// Source receives samples that are pushed. It is safe for concurrent use.
type Source struct {
	options   Options
	telemetry *telemetry
	index     *index
	token     *tokenFile          // nil: none is asked for
	access    *access             // nil: there is no file that says it
	budget    *semaphore.Weighted // of bytes of bodies
	bodies    sync.Pool
	batches   sync.Pool
	order     atomic.Uint64 // of members

	mu            sync.Mutex
	subscriptions map[types.NamespacedName]*subscription
}

// New returns a Source that takes nothing yet.
func New(o Options) *Source {
	o = o.withDefaults()
	s := &Source{
		options:       o,
		telemetry:     newTelemetry(o.Registerer),
		index:         newIndex(),
		budget:        semaphore.NewWeighted(o.MaxInFlightBytes),
		subscriptions: map[types.NamespacedName]*subscription{},
	}
	if o.BearerTokenFile != "" {
		s.token = &tokenFile{path: o.BearerTokenFile, now: o.Now}
	}
	if o.WebConfigFile != "" {
		s.access = &access{options: &s.options}
	}
	s.bodies.New = func() any { return &body{} }
	s.batches.New = func() any { return newBatch(s) }
	return s
}

// Set has what is pushed for the pods of a fleet, as c selects it, taken to a sink, from now until it is set otherwise
// or removed.
func (s *Source) Set(key types.NamespacedName, c Config, fleet Fleet, sink source.Sink) error {
	if err := c.validate(); err != nil {
		return err
	}
	added := newSubscription(s, key, c, fleet, sink)
	s.mu.Lock()
	old := s.subscriptions[key]
	if old.same(added) {
		s.mu.Unlock()
		return nil
	}
	s.subscriptions[key] = added
	s.mu.Unlock()
	old.end()
	added.begin()
	return nil
}

// Remove ends the taking for a key. The sink is not called any more when it returns.
func (s *Source) Remove(key types.NamespacedName) {
	s.mu.Lock()
	old := s.subscriptions[key]
	delete(s.subscriptions, key)
	s.mu.Unlock()
	old.end()
}

// listen has subscriptions report that they hear nothing. Examples of what came instead may be forgotten afterwards, which
// makes room for newer ones.
func (s *Source) listen(forget bool) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.subscriptions))
	s.mu.Unlock()
	now := s.options.Now()
	for _, u := range all {
		u.listen(now, forget)
	}
	if forget {
		s.index.forgetStrays()
	}
}

package pods

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
)

// subscription is one Set key: a reader for each active instance of the fleet.
type subscription struct {
	source    *Source
	config    Config
	selection *selection
	fleet     Fleet
	sink      source.Sink

	mu      sync.Mutex // held from listing the fleet until the readers match, so that the newest list wins
	ended   bool
	stop    func()
	readers map[string]*reader // by instance
}

var _ Fleet = (*podtracker.TargetPods)(nil)

func newSubscription(s *Source, c Config, fleet Fleet, sink source.Sink) *subscription {
	return &subscription{
		source: s, config: c, fleet: fleet, sink: sink,
		selection: newSelection(c.Metric, c.MatchLabels, c.Type),
		readers:   map[string]*reader{},
	}
}

// same reports whether two subscriptions, of which s may be nil, read the same.
func (s *subscription) same(other *subscription) bool {
	return s != nil && s.config.equal(&other.config) && s.fleet == other.fleet && s.sink == other.sink
}

func (s *subscription) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.stop = s.fleet.Watch(s.update)
	s.follow()
}

// end ends a subscription, which may be nil.
func (s *subscription) end() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.stop != nil {
		s.stop()
	}
	for instance, r := range s.readers {
		s.source.detachReader(r)
		delete(s.readers, instance)
	}
}

func (s *subscription) update() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.follow()
	}
}

// follow makes the readers match the active instances of the fleet and their endpoints.
func (s *subscription) follow() {
	active := s.fleet.Active()
	for id, r := range s.readers {
		at, ok := slices.BinarySearchFunc(active, id,
			func(i podtracker.Instance, id string) int { return strings.Compare(i.ID, id) })
		if !ok || r.ip != active[at].IP || !maps.Equal(r.ports, active[at].Ports) {
			s.source.detachReader(r)
			delete(s.readers, id)
		}
	}
	for _, i := range active {
		if s.readers[i.ID] == nil {
			r := &reader{instance: i.ID, ip: i.IP, ports: i.Ports, selection: s.selection, sink: s.sink}
			s.source.attachReader(r, locate(i, &s.config, s.source.options.AllowLoopback))
			s.readers[i.ID] = r
		}
	}
}

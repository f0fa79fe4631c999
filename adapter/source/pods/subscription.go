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

// same returns whether u, which may be nil, and v read the same.
func (u *subscription) same(v *subscription) bool {
	return u != nil && u.config.equal(&v.config) && u.fleet == v.fleet && u.sink == v.sink
}

func (u *subscription) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return
	}
	u.stop = u.fleet.Watch(u.update)
	u.follow()
}

// end ends a subscription, which may be nil.
func (u *subscription) end() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	if u.stop != nil {
		u.stop()
	}
	for instance, r := range u.readers {
		u.source.detach(r)
		delete(u.readers, instance)
	}
}

func (u *subscription) update() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.follow()
	}
}

// follow makes the readers match the active instances of the fleet and their endpoints.
func (u *subscription) follow() {
	active := u.fleet.Active()
	for id, r := range u.readers {
		at, ok := slices.BinarySearchFunc(active, id, func(i podtracker.Instance, id string) int { return strings.Compare(i.ID, id) })
		if !ok || r.ip != active[at].IP || !maps.Equal(r.ports, active[at].Ports) {
			u.source.detach(r)
			delete(u.readers, id)
		}
	}
	for _, i := range active {
		if u.readers[i.ID] == nil {
			r := &reader{instance: i.ID, ip: i.IP, ports: i.Ports, selection: u.selection, sink: u.sink}
			u.source.attach(r, locate(i, &u.config, u.source.options.AllowLoopback))
			u.readers[i.ID] = r
		}
	}
}

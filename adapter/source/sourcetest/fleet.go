// Package sourcetest has what the tests of all sources share: pods and a sink under the control of a test, virtual time, and
// measurements of memory. Only tests import it.
package sourcetest

import (
	"slices"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
)

// Fleet is pods under the control of a test. It is safe for concurrent use.
type Fleet struct {
	// Unready is what UnreadySince returns.
	Unready time.Time

	states   map[string]podtracker.PodState
	mu       sync.Mutex
	all      []podtracker.Instance
	watchers map[int]podtracker.Observer
	watched  int
}

var _ podtracker.IndexedPods = (*Fleet)(nil)

// NewFleet returns a fleet of instances.
func NewFleet(all ...podtracker.Instance) *Fleet {
	return &Fleet{all: all, watchers: map[int]podtracker.Observer{}}
}

// Instances returns all instances, however long ago they ended.
func (f *Fleet) Instances(time.Time) []podtracker.Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
}

// Active returns the instances that have not ended.
func (f *Fleet) Active() []podtracker.Instance {
	return slices.DeleteFunc(f.Instances(time.Time{}), func(i podtracker.Instance) bool { return !i.End.IsZero() })
}

// UnreadySince returns Unready.
func (f *Fleet) UnreadySince() time.Time { return f.Unready }

// PodState returns what SetPodState set, PodUnknown before.
func (f *Fleet) PodState(name string) podtracker.PodState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states[name]
}

// SetPodState sets what is known of a pod.
func (f *Fleet) SetPodState(name string, state podtracker.PodState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.states == nil {
		f.states = map[string]podtracker.PodState{}
	}
	f.states[name] = state
}

// Watch calls an observer at each Set until stop is called.
func (f *Fleet) Watch(o podtracker.Observer) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.watched
	f.watched++
	f.watchers[n] = o
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, n)
	}
}

// Set replaces the instances and calls the observers, in the order in which they began to watch.
func (f *Fleet) Set(all ...podtracker.Instance) {
	f.mu.Lock()
	f.all = all
	var watchers []podtracker.Observer
	for n := range f.watched {
		if o := f.watchers[n]; o != nil {
			watchers = append(watchers, o)
		}
	}
	f.mu.Unlock()
	for _, o := range watchers {
		o.Changed()
	}
}

// Watching returns how many watch.
func (f *Fleet) Watching() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watchers)
}

// Watched returns how many watch or have watched.
func (f *Fleet) Watched() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watched
}

// Package sourcetest has what the tests of all sources share: pods and a sink under the control of
// a test, virtual time, and measurements of memory. Only tests import it.
package sourcetest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
)

// Fleet is pods under the control of a test. It is safe for concurrent use.
type Fleet struct {
	// Unready is returned by UnreadySince.
	Unready time.Time

	states   map[string]podtracker.PodState
	mu       sync.Mutex
	all      []podtracker.Instance
	watchers map[int]func()
	watched  int
}

var _ podtracker.IndexedPods = (*Fleet)(nil)

// NewFleet returns a fleet of instances.
func NewFleet(all ...podtracker.Instance) *Fleet {
	return &Fleet{all: sorted(all), watchers: map[int]func(){}}
}

// sorted returns instances by ID, as podtracker.TargetPods lists them.
func sorted(all []podtracker.Instance) []podtracker.Instance {
	return slices.SortedFunc(slices.Values(all),
		func(a, b podtracker.Instance) int { return strings.Compare(a.ID, b.ID) })
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

// Watch calls changed at each Set until stop is called.
func (f *Fleet) Watch(changed func()) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.watched
	f.watched++
	f.watchers[n] = changed
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, n)
	}
}

// Set replaces the instances and calls the watchers, in the order in which they began to watch.
func (f *Fleet) Set(all ...podtracker.Instance) {
	f.mu.Lock()
	f.all = sorted(all)
	var watchers []func()
	for n := range f.watched {
		if changed := f.watchers[n]; changed != nil {
			watchers = append(watchers, changed)
		}
	}
	f.mu.Unlock()
	for _, changed := range watchers {
		changed()
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

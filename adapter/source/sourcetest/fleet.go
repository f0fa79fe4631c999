package sourcetest

import (
	"slices"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/instances"
)

// Fleet is a fleet whose instances a test sets. It is safe for concurrent use.
type Fleet struct {
	// Unready is what UnreadySince returns.
	Unready time.Time

	mu       sync.Mutex
	all      []instances.Instance
	watchers map[int]instances.Observer
	watched  int
}

var _ instances.RosterFleet = (*Fleet)(nil)

// NewFleet returns a fleet of instances.
func NewFleet(all ...instances.Instance) *Fleet {
	return &Fleet{all: all, watchers: map[int]instances.Observer{}}
}

// Instances returns all instances, however long ago they ended.
func (f *Fleet) Instances(time.Time) []instances.Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
}

// Active returns the instances that have not ended.
func (f *Fleet) Active() []instances.Instance {
	return slices.DeleteFunc(f.Instances(time.Time{}), func(i instances.Instance) bool { return !i.End.IsZero() })
}

// UnreadySince returns Unready.
func (f *Fleet) UnreadySince() time.Time { return f.Unready }

// Watch has an observer told of Set until stop is called.
func (f *Fleet) Watch(o instances.Observer) (stop func()) {
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

// Set makes the fleet another one and tells those who watch, the first of them first.
func (f *Fleet) Set(all ...instances.Instance) {
	f.mu.Lock()
	f.all = all
	var watchers []instances.Observer
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

package pipeline

import (
	"fmt"
	"slices"
	"strings"
)

// window holds v̂, a value for every instance and tick, over the ticks [first, last] of the grid at which a forecast can
// be made.
type window struct {
	grid
	instances   []*Instance // sorted by ID, so that sums do not depend on the order they came in
	series      []series    // of the instances, in their order
	values      []float64   // of all series, n ticks each
	first, last int         // the first and the newest tick at which any instance is known
	loads       []load      // by tick
	spaced      int         // how many ticks apart readings are, by the instance that is read least often

	// Memory of the stages, by tick where nothing else is said.
	silent  []int     // how many instances are active and not known
	raw     []float64 // Â; with the adaptive method the sum of the established instances
	scratch []float64 // the loads of one instance, or the demand
	byStart []*series // sorted by their start
	weights weights
	settled []settled // by tick, of the adaptive method
}

// series is one instance on the grid. Its value at tick k is measured where k is in known, and imputed at the other
// ticks of [first, last] at which it is active; elsewhere it means nothing.
type series struct {
	*Instance
	active, known ticks
	values        []float64
	newcomer      bool  // it had another instance to take load over from when it started
	spacing       int64 // how many ticks its samples are apart
	growing       ticks // where its weight is not known to be 1, and the first tick after
}

// ticks are those from one number up to, and without, another.
type ticks struct{ from, to int }

func (t ticks) empty() bool        { return t.from >= t.to }
func (t ticks) contain(k int) bool { return t.from <= k && k < t.to }
func (t ticks) and(u ticks) ticks  { return ticks{max(t.from, u.from), min(t.to, u.to)} }

// span returns the ticks [first, last].
func (w *window) span() ticks { return ticks{w.first, w.last + 1} }

// seat gives each instance a series, without values yet.
func (w *window) seat(instances []Instance) error {
	w.instances = w.instances[:0]
	for i := range instances {
		w.instances = append(w.instances, &instances[i])
	}
	slices.SortFunc(w.instances, func(a, b *Instance) int { return strings.Compare(a.ID, b.ID) })
	w.series = resize(w.series, len(instances))
	w.values = resize(w.values, w.n*len(instances))
	for i, instance := range w.instances {
		if i > 0 && w.instances[i-1].ID == instance.ID {
			return fmt.Errorf("two instances have the ID %q; IDs must be unique", instance.ID)
		}
		w.series[i] = series{
			Instance: instance,
			active:   ticks{w.index(instance.Start), w.index(instance.end())},
			values:   w.values[i*w.n : (i+1)*w.n],
		}
	}
	return nil
}

// forget lets go of what is the caller's.
func (w *window) forget() {
	clear(w.instances)
	clear(w.series)
}

// resize returns a slice of n elements, of any value, in the memory of s if that is large enough.
func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// zeroed is resize with every element zero.
func zeroed[T any](s []T, n int) []T {
	s = resize(s, n)
	clear(s)
	return s
}

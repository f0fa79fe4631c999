package series

import (
	"fmt"
	"slices"
	"strings"
)

// Window holds v̂, a value for every instance and tick, over the ticks [First, Last] of the grid at which a forecast
// can be made.
type Window struct {
	Grid
	Rows        []Row // sorted by ID, so that sums do not depend on the order of the input
	First, Last int   // the first and the newest tick at which any instance is known

	instances []*Instance
	values    []float64 // of all rows, N ticks each
}

// Row is one instance on the grid. Its value at tick k is measured if k is in Known, and imputed at other
// active ticks of [First, Last]; elsewhere it is undefined.
type Row struct {
	*Instance
	Active, Known Ticks
	Values        []float64
	Spacing       int64 // average number of ticks between its samples; 0 if they are too few
}

// AssignRows gives each instance a row on the grid, without values. It fails if two instances have the same ID.
func (w *Window) AssignRows(instances []Instance) error {
	w.instances = w.instances[:0]
	for i := range instances {
		w.instances = append(w.instances, &instances[i])
	}
	slices.SortFunc(w.instances, func(a, b *Instance) int { return strings.Compare(a.ID, b.ID) })
	w.Rows = Resize(w.Rows, len(instances))
	w.values = Resize(w.values, w.N*len(instances))
	for i, instance := range w.instances {
		if i > 0 && w.instances[i-1].ID == instance.ID {
			return fmt.Errorf("two instances have the ID %q; IDs must be unique", instance.ID)
		}
		w.Rows[i] = Row{
			Instance: instance,
			Active:   Ticks{w.Index(instance.Start), w.Index(instance.Until())},
			Values:   w.values[i*w.N : (i+1)*w.N],
		}
	}
	return nil
}

// Span returns the ticks [First, Last].
func (w *Window) Span() Ticks { return Ticks{w.First, w.Last + 1} }

// Spacing returns the number of ticks between readings of the instance that is read least often; at least 1.
func (w *Window) Spacing() int {
	widest := int64(1)
	for i := range w.Rows {
		widest = max(widest, w.Rows[i].Spacing)
	}
	return int(min(widest, int64(w.N)))
}

// Loads returns the loads of the ticks [First, Last] on their own grid.
func (w *Window) Loads(ticks []Load) Loads {
	return Loads{
		Grid:    Grid{Start: w.Tick(w.First), Step: w.Step, N: w.Last - w.First + 1},
		Spacing: w.Spacing(), Ticks: ticks,
	}
}

// Release drops references to memory of the caller.
func (w *Window) Release() {
	clear(w.instances)
	clear(w.Rows)
}

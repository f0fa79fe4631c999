package plan

import "github.com/foresail/foresail/nodepool/fleet"

// Place chooses placements for n nodes of any shape, fewer if no placement is left.
func Place(s Snapshot, n int) []fleet.Placement {
	return newPlacer(newCensus(s)).place(nil, n, anything)
}

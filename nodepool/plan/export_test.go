package plan

import "github.com/foresail/foresail/nodepool/fleet"

// Place chooses where, what and how n nodes are launched that may be anything, fewer if no placement is left.
func Place(s Snapshot, n int) []fleet.Placement {
	return newPlacer(newCensus(s)).place(nil, n, anything)
}

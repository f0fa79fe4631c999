// Package drain empties nodes by the rules of Kubernetes: through the eviction API, with PodDisruptionBudgets, and never
// a pod that nobody would bring back.
package drain

import "time"

// Progress is how far a drain is.
type Progress struct {
	Remaining int      // pods that are still to leave
	Refused   []string // evictions that a PodDisruptionBudget refused just now, as namespace/name: why
}

// Limits is how a drain may go.
type Limits struct {
	Force bool          // delete pods instead of evicting them, and bare ones too
	Grace time.Duration // the most that pods may take to end; 0 = what they say
}

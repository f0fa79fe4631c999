package share

import "slices"

// Level returns the largest limit for each of some demands with which they fit into a total
// together: demands below it are met, and the others get equal parts of the rest. It is the largest
// demand if all fit.
func Level(total int64, demands []int64) int64 {
	sorted := slices.Sorted(slices.Values(demands))
	for i, d := range sorted {
		if part := total / int64(len(sorted)-i); d > part {
			return part
		}
		total -= d
	}
	if len(sorted) == 0 {
		return total
	}
	return sorted[len(sorted)-1]
}

package scale

import (
	"math"
	"slices"
	"sync"
)

// quantiles keeps values and returns how they are spread. It is safe for concurrent use.
type quantiles struct {
	mu     sync.Mutex
	values []float64
}

func (q *quantiles) add(values ...float64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.values = append(q.values, values...)
}

func (q *quantiles) reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.values = q.values[:0]
}

// quantile returns the value that a share of all does not exceed, 0 without values.
func (q *quantiles) quantile(share float64) float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(q.values))
	return sorted[int(math.Round(share*float64(len(sorted)-1)))]
}

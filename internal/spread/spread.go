// Package spread has work that is due for many at once done in parts, over the time until it is due again. Done at once it would keep every
// core busy for a moment, in which reads and samples would have to wait.
package spread

import (
	"context"
	"time"
)

// Over returns a function that waits until a share of the work may be done: work of which a share s is done waits for s of the first three
// quarters of the period. It waits for nothing if the work takes longer, or when the context ends, and returns for how long it waited.
func Over(ctx context.Context, period time.Duration) (wait func(share float64) time.Duration) {
	over := period * 3 / 4
	begun := time.Now()
	return func(share float64) time.Duration {
		from := time.Now()
		left := begun.Add(time.Duration(share * float64(over))).Sub(from)
		if left <= 0 {
			return 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(left):
		}
		return time.Since(from)
	}
}

package share

import (
	"context"
	"time"
)

// Spread returns a function that waits until a share of some periodic work may be done, which done
// at once would keep every core busy for a moment: work of which a share s is done waits for s of
// the first three quarters of the period. It waits for nothing if the work takes longer, or when
// the context ends, and returns for how long it waited.
func Spread(ctx context.Context, period time.Duration) (wait func(share float64) time.Duration) {
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

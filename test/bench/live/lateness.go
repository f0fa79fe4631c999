package main

import (
	"context"
	"slices"
	"time"
)

// lateness measures how much later than requested this process is woken, until ctx ends, at the
// 99th percentile. Work and answers of pods take that much longer. A quiet machine is late by less
// than a millisecond or two.
func lateness(ctx context.Context) time.Duration {
	const every = 10 * time.Millisecond
	var late []time.Duration
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		due := time.Now().Add(every)
		timer.Reset(every)
		select {
		case <-ctx.Done():
			return quantile(late, 0.99)
		case <-timer.C:
			late = append(late, time.Since(due))
		}
	}
}

// quantile returns the least value that a share of all does not exceed, 0 of none.
func quantile(values []time.Duration, share float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(share*float64(len(values))))]
}

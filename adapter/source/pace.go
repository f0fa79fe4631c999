package source

import (
	"hash/fnv"
	"time"
)

// Phase returns a moment within an interval that depends on the parts alone. Replicas thus read the same thing at the
// same time, and different things are spread over the interval.
func Phase(interval time.Duration, parts ...string) time.Duration {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	x := h.Sum64()
	x ^= x >> 31 // its high bits are better than its low ones
	return time.Duration(x % uint64(interval))
}

// UntilNext returns the time from now until the next moment that is a phase after a multiple of the interval: above 0,
// at most the interval. Now and the phase have the same origin.
func UntilNext(now, phase, interval time.Duration) time.Duration {
	return interval - ((now-phase)%interval+interval)%interval
}

// Backoff returns the wait after the n-th failure in a row, counted from 1: it doubles from the
// first one up to a limit, but is never less than the first.
func Backoff(n int, first, limit time.Duration) time.Duration {
	wait := first
	for i := 1; i < n && wait < limit; i++ {
		wait *= 2
	}
	return max(first, min(wait, limit))
}

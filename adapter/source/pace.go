package source

import (
	"hash/fnv"
	"time"
)

// Phase returns a moment within an interval that is the own of what the parts name: always the same one for the same
// parts, so that replicas read a thing at the same time, and spread over the interval for different ones.
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

// UntilNext returns how long it is from now until the next time that is a phase behind a multiple of the interval: more
// than 0, at most the interval. Both now and the phase are counted from the same origin.
func UntilNext(now, phase, interval time.Duration) time.Duration {
	return interval - ((now-phase)%interval+interval)%interval
}

// Backoff returns how long it is from the n-th failure in a row (counted from 1) to the next try: it doubles from the
// first one on, up to a limit, but is never less than the first.
func Backoff(n int, first, limit time.Duration) time.Duration {
	wait := first
	for i := 1; i < n && wait < limit; i++ {
		wait *= 2
	}
	return max(first, min(wait, limit))
}

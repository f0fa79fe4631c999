package sourcetest

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// Clock is a clock that a test sets, as an administrator or NTP does: the time of day changes, and the
// elapsed time that readings carry does not. It is safe for concurrent use.
type Clock struct{ ahead atomic.Int64 }

// Set sets the clock forward, or back if by is less than 0.
func (c *Clock) Set(by time.Duration) { c.ahead.Add(int64(by)) }

// Now returns the time.Now of the test as this clock shows it. In virtual time that carries no elapsed
// time, and package time has no way to make one that differs from the time of day, so this writes the
// fields of a time.Time as time.Now does outside of it.
func (c *Clock) Now() time.Time {
	const (
		hasElapsed   = 1 << 63 // in wall: the seconds since 1885, and ext is the elapsed time (ns)
		secondsShift = 30      // below them the nanoseconds
	)
	now := time.Now()
	shown := now.Add(time.Duration(c.ahead.Load())).Round(0)
	epoch := time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC)
	of := struct {
		wall uint64
		ext  int64
		loc  *time.Location
	}{
		wall: hasElapsed | uint64(shown.Unix()-epoch.Unix())<<secondsShift | uint64(shown.Nanosecond()),
		ext:  now.UnixNano(), loc: time.Local,
	}
	return *(*time.Time)(unsafe.Pointer(&of)) //nolint:gosec // as above
}

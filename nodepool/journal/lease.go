package journal

import (
	"errors"
	"sync"
	"time"

	"github.com/foresail/foresail/nodepool/state"
)

// A lease lasts from one write of the journal to the next. Its holder writes every RenewAfter,
// whatever its cycles do, and acts for ActTerm after its last write began. Another process may take
// the lease when it has seen no write for LeaseTerm, by its own clock. So two processes never act
// at the same time, if clocks run at about the same speed; the time that they show does not matter.
// The difference between the two terms is for calls that are in progress when the holder stops.
const (
	LeaseTerm  = 12 * time.Second
	ActTerm    = 8 * time.Second
	RenewAfter = 3 * time.Second
	// WatchEvery is the interval in which a process without the lease checks whether it is free.
	WatchEvery = 2 * time.Second
)

// ErrLeaseLost means that this process may not act any more, because it has not renewed the lease
// in time.
var ErrLeaseLost = errors.New("the lease has not been renewed in time")

// lease is a process's knowledge of the lease in the journal. It is safe for concurrent use.
type lease struct {
	owner string // the name of this process

	mu      sync.Mutex
	watched bool
	version int64     // of the record last seen
	since   time.Time // when that version was first seen
	renewed time.Time // start of the last write of this process; zero = it does not hold the lease
}

// recordRead records a record that was read.
func (l *lease) recordRead(r state.Record, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.watched || r.Version != l.version {
		l.watched, l.version, l.since = true, r.Version, now
	}
	if r.Owner != l.owner {
		l.renewed = time.Time{}
	}
}

// recordWrite records a write of this process.
func (l *lease) recordWrite(r state.Record, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched, l.version, l.since, l.renewed = true, r.Version, began, began
}

// lose ends the lease of this process, as far as it knows.
func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = time.Time{}
}

// mayHold reports whether this process holds the lease of a record that it has seen, or may take it.
func (l *lease) mayHold(r state.Record, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return r.Owner == l.owner || r.Owner == "" || now.Sub(l.since) >= LeaseTerm
}

// due reports whether the lease must be written before anything is done.
func (l *lease) due(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed.IsZero() || now.Sub(l.renewed) >= RenewAfter
}

// held reports whether this process has written the lease and has not lost it since, expired or not.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero()
}

// left returns how long this process may act.
func (l *lease) left(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return 0
	}
	return ActTerm - now.Sub(l.renewed)
}

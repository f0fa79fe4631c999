package nodepool

import (
	"errors"
	"time"

	"github.com/foresail/foresail/nodepool/state"
)

// A lease lasts from one write of the journal to the next. Whoever holds it acts for actTerm after its last write began;
// another may take it when it has seen no write for leaseTerm, by its own clock. So nobody acts when somebody else may, if
// clocks merely run at about the same speed: what time they show does not matter. Where cycles are far apart, others wait for
// longer: for missedTicks of them.
const (
	leaseTerm  = 60 * time.Second
	actTerm    = 40 * time.Second
	renewAfter = 10 * time.Second

	missedTicks = 3
)

var errLeaseLost = errors.New("the lease has not been renewed in time")

// lease is what a process knows of the lease in the journal.
type lease struct {
	owner   string // the name of this process
	watched bool
	version int64     // of the record, seen last
	since   time.Time // it was seen first
	renewed time.Time // the last write of this process began; zero = it does not hold the lease
}

// see takes note of the record.
func (l *lease) see(r state.Record, now time.Time) {
	if !l.watched || r.Version != l.version {
		l.watched, l.version, l.since = true, r.Version, now
	}
	if r.Owner != l.owner {
		l.renewed = time.Time{}
	}
}

// wrote takes note of a write of this process.
func (l *lease) wrote(r state.Record, began time.Time) {
	l.watched, l.version, l.since, l.renewed = true, r.Version, began, began
}

// mine tells whether this process may hold the lease of a record that it has seen: it does, or may take it. The interval
// is that of cycles.
func (l *lease) mine(r state.Record, now time.Time, interval time.Duration) bool {
	return r.Owner == l.owner || r.Owner == "" || now.Sub(l.since) >= max(leaseTerm, missedTicks*interval)
}

// due tells whether the lease must be written before anything is done.
func (l *lease) due(now time.Time) bool {
	return l.renewed.IsZero() || now.Sub(l.renewed) >= renewAfter
}

// left is for how long this process may act.
func (l *lease) left(now time.Time) time.Duration {
	if l.renewed.IsZero() {
		return 0
	}
	return actTerm - now.Sub(l.renewed)
}

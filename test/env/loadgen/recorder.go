package loadgen

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// outcome is how a request ended.
type outcome uint8

const (
	ok       outcome = iota // answered with 2xx
	failed                  // another answer, no connection, or no endpoint
	timedOut                // no answer within the timeout
	canceled                // under way when the run was ended early
	dropped                 // never sent
)

// Counts say what became of requests. Sent = OK + Failed + TimedOut + Canceled + those still under way.
type Counts struct {
	Sent     int
	OK       int // answered with 2xx
	Failed   int // another answer, no connection, or no endpoint
	TimedOut int
	Canceled int // under way when the run was ended early
	Dropped  int // not sent, because too many were under way
}

func (c *Counts) add(o outcome) {
	switch o {
	case ok:
		c.OK++
	case failed:
		c.Failed++
	case timedOut:
		c.TimedOut++
	case canceled:
		c.Canceled++
	case dropped:
		c.Dropped++
	}
}

// recorder keeps what happened in a run. The zero value with a map is ready; it is safe for concurrent use.
type recorder struct {
	mu       sync.Mutex
	start    time.Time // zero: not begun
	counts   Counts
	ended    []record // in the order in which they ended
	failures map[string]int
}

// record is one arrival that is over. Times are since the start.
type record struct {
	due, end time.Duration
	outcome  outcome
}

func (r *recorder) begin(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = now
}

// elapsed returns the time since the start, 0 before it.
func (r *recorder) elapsed() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sinceStart()
}

func (r *recorder) sinceStart() time.Duration {
	if r.start.IsZero() {
		return 0
	}
	return time.Since(r.start)
}

// scheduled counts the arrivals so far, sent or dropped.
func (r *recorder) scheduled() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts.Sent + r.counts.Dropped
}

// admit counts an arrival and reports whether it may be sent: not when limit requests are under way.
func (r *recorder) admit(due time.Duration, limit int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inFlight() >= limit {
		r.note(due, dropped)
		return false
	}
	r.counts.Sent++
	return true
}

// end notes how a request that was admitted ended, and why if it failed.
func (r *recorder) end(due time.Duration, o outcome, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(due, o)
	if o == failed {
		r.failures[reason]++
	}
}

func (r *recorder) note(due time.Duration, o outcome) {
	r.counts.add(o)
	r.ended = append(r.ended, record{due: due, end: r.sinceStart(), outcome: o})
}

func (r *recorder) inFlight() int {
	c := r.counts
	return c.Sent - c.OK - c.Failed - c.TimedOut - c.Canceled
}

// view is what was recorded up to one moment. The records are shared with the recorder, which only
// appends to them.
type view struct {
	elapsed  time.Duration
	counts   Counts
	inFlight int
	ended    []record
	failures map[string]int
}

func (r *recorder) view() view {
	r.mu.Lock()
	defer r.mu.Unlock()
	return view{
		elapsed: r.sinceStart(), counts: r.counts, inFlight: r.inFlight(),
		ended: slices.Clip(r.ended), failures: maps.Clone(r.failures),
	}
}

package forward

import (
	"errors"
	"sync"
	"time"
)

const (
	// maxFailures is how many reads in a row may fail before the next ones fail at once. An HPA
	// controller has five reads in flight by default.
	maxFailures = 5
	// openFor is how long they do until one read is let through as a probe: as long as an HPA takes to ask again.
	openFor = 15 * time.Second
)

var errNotAsked = errors.New("it has not been asked yet")

// breaker rejects reads at once while an adapter does not answer. Any HTTP response is an answer.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex
	failures int       // reads in a row without an answer
	cause    error     // of the last one; nil: closed
	until    time.Time // while open: when to let a probe through
	probing  bool      // one is under way
	unlisted error     // why the list of metrics had no answer; nil: it had
	reported *bool     // what was last reported; nil: nothing yet
}

func newBreaker(now func() time.Time) *breaker { return &breaker{now: now, unlisted: errNotAsked} }

// change is whether the second adapter has begun or ceased to answer, and with what cause.
type change struct {
	changed bool
	cause   error // nil: it answers
}

// admit lets a read through or returns why not. The caller must report how a read ended that was let through.
func (b *breaker) admit() (probe bool, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.cause == nil:
		return false, nil
	case b.probing || b.now().Before(b.until):
		return false, b.cause
	}
	b.probing = true
	return true, nil
}

// answered reports that a read had an answer.
func (b *breaker) answered() change {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.cause, b.probing, b.unlisted = 0, nil, false, nil
	return b.changeLocked()
}

// failed reports that a read had none; slow: not in time. An adapter that lists its metrics may be
// slow with one of them. Late failures of reads from before the breaker opened keep it open no
// longer.
func (b *breaker) failed(cause error, probe, slow bool) change {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
	if slow && b.unlisted == nil {
		if probe {
			b.failures, b.cause = 0, nil
		}
		return b.changeLocked()
	}
	b.failures++
	if probe || b.cause == nil && b.failures >= maxFailures {
		b.cause, b.until = cause, b.now().Add(openFor)
	}
	return b.changeLocked()
}

// gaveUp reports that a client did not wait for the end of its read.
func (b *breaker) gaveUp(probe bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
}

// listed reports why the list of metrics had no answer, or that it had one. An answer closes a
// breaker that is due for a probe, in case that there are no reads at the moment, but only until the next
// failure: an adapter may list what it cannot read.
func (b *breaker) listed(cause error) change {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unlisted = cause
	if cause == nil && b.cause != nil && !b.probing && !b.now().Before(b.until) {
		b.failures, b.cause = maxFailures-1, nil
	}
	return b.changeLocked()
}

// available reports whether the second adapter has answered what it was last asked.
func (b *breaker) available() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.problemLocked() == nil
}

func (b *breaker) problemLocked() error {
	if b.cause != nil {
		return b.cause
	}
	return b.unlisted
}

func (b *breaker) changeLocked() change {
	cause := b.problemLocked()
	up := cause == nil
	if errors.Is(cause, errNotAsked) || b.reported != nil && *b.reported == up {
		return change{}
	}
	b.reported = &up
	return change{changed: true, cause: cause}
}

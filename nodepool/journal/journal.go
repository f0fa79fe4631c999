package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/foresail/foresail/nodepool/config"

	"github.com/foresail/foresail/nodepool/state"
)

// ErrStop ends a cycle: the content of the journal is unknown, or this process must not act on it.
var ErrStop = errors.New("the cycle ends here")

// Journal is the record of a pool as last read or written by this process, with its lease. Cycles
// change the record, and a second goroutine renews the lease by writing the stored record again.
type Journal struct {
	Store       state.Store
	Pool, owner string
	Now         func() time.Time

	lease lease
	// storeLock holds a value while one of the two goroutines uses the store, which owns the next two
	// fields.
	storeLock chan struct{}
	stored    state.Record // as last read or written
	unsure    bool         // a renewal may have been written

	decided atomic.Pointer[time.Time] // the last decision of this process while it led

	// State of the current cycle.
	Record   state.Record
	Loaded   bool
	Leading  bool
	TookOver bool  // the record was written by another process, which may have launched instances
	Dirty    bool  // the record has changed since it was written
	Slimmed  error // why the record was written without texts and learned values; nil = it was not
	unsaved  []Event
	events   []Event
}

// New returns the journal of a lease owner. Its store and the name of its pool must be set.
func New(owner string, now func() time.Time) *Journal {
	return &Journal{owner: owner, Now: now, lease: lease{owner: owner}, storeLock: make(chan struct{}, 1)}
}

// Begin resets the state of the previous cycle.
func (j *Journal) Begin() {
	j.Record, j.Loaded, j.Leading, j.TookOver, j.Dirty, j.Slimmed = state.Record{}, false, false, false, false, nil
	j.unsaved, j.events = nil, nil
}

// lockStore waits until this goroutine may use the store, and returns a function that ends the use.
func (j *Journal) lockStore() (end func()) {
	j.storeLock <- struct{}{}
	return func() { <-j.storeLock }
}

// read reads the stored record. The caller must hold the turn.
func (j *Journal) read(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, config.CallTimeout)
	defer cancel()
	r, err := j.Store.Load(call, j.Pool)
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	j.stored, j.unsure = r, false
	j.lease.recordRead(r, j.Now())
	return nil
}

// readClone reads the journal.
func (j *Journal) readClone(ctx context.Context) (state.Record, error) {
	defer j.lockStore()()
	err := j.read(ctx)
	return j.stored.Clone(), err
}

// Load reads the journal and takes, keeps or watches the lease.
func (j *Journal) Load(ctx context.Context, s config.Spec) error {
	r, err := j.readClone(ctx)
	if err != nil {
		return err
	}
	now := j.Now()
	j.TookOver = r.Owner != j.owner
	j.Record, j.Loaded = r, true
	j.Record.ForgetOtherSpecs(s.LaunchSpec, s.Drain.Identity())
	j.Record.Trim(now, s.Join.KeepFailedFor, s.Plan.PendingFor+s.Plan.CooldownUp)
	if !j.lease.mayHold(r, now) {
		return nil
	}
	if j.lease.left(now) <= 0 {
		j.lease.lose()
	}
	if j.lease.due(now) {
		if r.Owner != j.owner {
			j.Event(Event{Reason: EventLeading, Message: fmt.Sprintf("%s leads the pool now", j.owner)})
		}
		if err := j.Save(ctx); err != nil {
			return err
		}
	}
	j.Leading = true
	return nil
}

// Save writes the journal, which renews the lease. The record stays the same object, because tasks
// hold parts of it. After an error nothing more may be done in this cycle.
func (j *Journal) Save(ctx context.Context) error {
	defer j.lockStore()()
	if j.lease.held() && j.lease.left(j.Now()) <= 0 {
		// In the next cycle the store shows whether another process has the lease.
		j.lease.lose()
		return fmt.Errorf("%w: %w", ErrStop, ErrLeaseLost)
	}
	if j.unsure { // a renewal that timed out may have been written
		if err := j.read(ctx); err != nil {
			return fmt.Errorf("%w: read the journal: %w", ErrStop, err)
		}
	}
	if j.stored.Owner != j.owner && j.stored.Version != j.Record.Version {
		// Another process has taken the lease since this one loaded the record, as a renewal has found.
		j.lease.lose()
		j.Leading = false
		return fmt.Errorf("%w: write the journal: %w", ErrStop, state.ErrConflict)
	}
	j.Record.Owner, j.Record.DecidedAt, j.Record.Version = j.owner, j.LastDecided(), j.stored.Version
	if err := j.write(ctx); err != nil {
		j.Leading = false
		return fmt.Errorf("%w: write the journal: %w", ErrStop, err)
	}
	j.Record.Version, j.Dirty = j.stored.Version, false
	j.events = append(j.events, j.unsaved...)
	j.unsaved = nil
	return nil
}

// write stores the record. If it is too large for the store, everything is left out that no process
// needs to continue.
func (j *Journal) write(ctx context.Context) error {
	err := j.writeOnce(ctx, j.Record.Clone(), config.CallTimeout)
	if !errors.Is(err, state.ErrTooLarge) {
		return err
	}
	j.Slimmed = err
	return j.writeOnce(ctx, j.Record.Slim(), config.CallTimeout)
}

// writeOnce writes a record, which renews the lease. The caller must hold the turn.
func (j *Journal) writeOnce(ctx context.Context, r state.Record, timeout time.Duration) error {
	began := j.Now()
	call, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	written, err := j.Store.Save(call, j.Pool, r)
	if err != nil {
		return err
	}
	j.stored = written
	j.lease.recordWrite(written, began)
	return nil
}

// MayAct returns how long this process may act; zero or less without the lease.
func (j *Journal) MayAct() time.Duration { return j.lease.left(j.Now()) }

// KeepAfter returns the wait before the next call of [Journal.Keep].
func (j *Journal) KeepAfter() time.Duration {
	if j.lease.held() {
		return RenewAfter
	}
	return WatchEvery
}

// Keep renews the lease if this process holds it, even during a cycle. Otherwise it reports whether
// the lease is free, for a cycle to take.
func (j *Journal) Keep(ctx context.Context) (free bool, err error) {
	defer j.lockStore()()
	now := j.Now()
	if j.lease.held() {
		if left := j.lease.left(now); left > 0 && j.lease.due(now) {
			return false, j.renew(ctx, left)
		}
		return false, nil
	}
	if err := j.read(ctx); err != nil {
		return false, err
	}
	return j.stored.Owner != j.owner && j.lease.mayHold(j.stored, j.Now()), nil
}

// renew writes the stored record again. After an error it is unknown whether it was written, so the
// next renewal reads it first. A record that another process has written ends the lease.
func (j *Journal) renew(ctx context.Context, left time.Duration) error {
	if j.unsure {
		if err := j.read(ctx); err != nil || !j.lease.held() {
			return err
		}
	}
	r := j.stored.Clone()
	if at := j.decided.Load(); at != nil {
		if at.After(r.DecidedAt) {
			r.DecidedAt = *at
		}
	}
	err := j.writeOnce(ctx, r, min(left, RenewAfter))
	switch j.unsure = err != nil; {
	case errors.Is(err, state.ErrConflict):
		j.lease.lose()
		return fmt.Errorf("renew the lease: %w", err)
	case err != nil:
		return fmt.Errorf("renew the lease: %w", err)
	}
	return nil
}

// NoteDecision records the time of a decision.
func (j *Journal) NoteDecision(at time.Time) { j.decided.Store(&at) }

// LastDecided returns the time of the last decision of the leading process, as far as it is known.
func (j *Journal) LastDecided() time.Time {
	if at := j.decided.Load(); at != nil && at.After(j.Record.DecidedAt) {
		return *at
	}
	return j.Record.DecidedAt
}

// Event adds an event that is reported once the journal is saved.
func (j *Journal) Event(e Event) { j.unsaved = append(j.unsaved, e) }

// Happened returns the events of a cycle that ended with an error, or with none. It leaves out
// those of a write that may have failed.
func (j *Journal) Happened(err error) []Event {
	if !errors.Is(err, ErrStop) && !errors.Is(err, ErrLeaseLost) {
		j.events, j.unsaved = append(j.events, j.unsaved...), nil
	}
	return j.events
}

// Release releases the lease.
func (j *Journal) Release(ctx context.Context) error {
	r, err := j.readClone(ctx)
	if err != nil {
		return fmt.Errorf("release the lease: %w", err)
	}
	if r.Owner != j.owner {
		return nil
	}
	r.Owner = ""
	j.lease.lose()
	if _, err := j.Store.Save(ctx, j.Pool, r); err != nil && !errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("release the lease: %w", err)
	}
	return nil
}

// NewID returns the id of an action. It is unique, because a version of the journal is written
// once, by one owner, and short enough for labels, tags and tokens.
func (j *Journal) NewID(kind string) string {
	now := j.Now()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%s|%d|%d", j.Pool, j.owner, j.Record.Version, now.UnixNano()))
	return fmt.Sprintf("%s-%s-%s", kind, now.UTC().Format("20060102-150405"), hex.EncodeToString(sum[:5]))
}

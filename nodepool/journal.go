package nodepool

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

// errStop ends a cycle: what is in the journal is not known any more, or it is not for this process to act on.
var errStop = errors.New("the cycle ends here")

// journal is the record of a pool as this process has read or written it last, and the lease on it. Cycles change the
// record, and a second goroutine renews the lease by writing the stored one again.
type journal struct {
	store       state.Store
	pool, owner string
	now         func() time.Time

	lease lease
	// turn holds a value while one of the two goroutines uses the store. The next two fields are that one's.
	turn   chan struct{}
	stored state.Record // as it was read or written last
	unsure bool         // a renewal may have been written

	decided atomic.Pointer[time.Time] // the last decision of this process while it led

	// Of the present cycle.
	record     state.Record
	launchSpec string // [Spec.LaunchSpec]
	loaded     bool
	leading    bool
	tookOver   bool  // the record was another's: that process may have launched
	dirty      bool  // the record has changed since it was written
	slimmed    error // why the record was written without its texts and what was learned; nil = it was not
	unsaved    []Event
	events     []Event
}

// begin forgets what was of the cycle before.
func (j *journal) begin() {
	j.record, j.loaded, j.leading, j.tookOver, j.dirty, j.slimmed = state.Record{}, false, false, false, false, nil
	j.unsaved, j.events = nil, nil
}

// use waits for the turn of this goroutine at the store, and returns how to end it.
func (j *journal) use() (end func()) {
	j.turn <- struct{}{}
	return func() { <-j.turn }
}

// read reads the stored record in the turn of this goroutine.
func (j *journal) read(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, config.CallTimeout)
	defer cancel()
	r, err := j.store.Load(call, j.pool)
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	j.stored, j.unsure = r, false
	j.lease.see(r, j.now())
	return nil
}

// fetch reads the journal.
func (j *journal) fetch(ctx context.Context) (state.Record, error) {
	defer j.use()()
	err := j.read(ctx)
	return j.stored.Clone(), err
}

// load reads the journal and takes, keeps or watches the lease.
func (j *journal) load(ctx context.Context, s config.Spec) error {
	r, err := j.fetch(ctx)
	if err != nil {
		return err
	}
	now := j.now()
	j.tookOver = r.Owner != j.owner
	j.record, j.loaded = r, true
	j.launchSpec = s.LaunchSpec
	j.record.ForgetOtherSpecs(s.LaunchSpec, s.Drain.Identity())
	j.record.Trim(now, s.Join.KeepFailedFor)
	if !j.lease.mine(r, now) {
		return nil
	}
	if j.lease.left(now) <= 0 {
		j.lease.lose()
	}
	if j.lease.due(now) {
		if r.Owner != j.owner {
			j.event(Event{Reason: EventLeading, Message: fmt.Sprintf("%s leads the pool now", j.owner)})
		}
		if err := j.save(ctx); err != nil {
			return err
		}
	}
	j.leading = true
	return nil
}

// save writes the journal, which renews the lease. The record stays the same object, as tasks hold parts of it. After
// an error nothing more may be done in this cycle.
func (j *journal) save(ctx context.Context) error {
	defer j.use()()
	if j.lease.held() && j.lease.left(j.now()) <= 0 {
		// The store shows in the next cycle whether another process has it.
		j.lease.lose()
		return fmt.Errorf("%w: %w", errStop, errLeaseLost)
	}
	if j.unsure { // a renewal that timed out may have been written
		if err := j.read(ctx); err != nil {
			return fmt.Errorf("%w: read the journal: %w", errStop, err)
		}
	}
	if j.stored.Owner != j.owner && j.stored.Version != j.record.Version {
		// Another process has taken the lease since this one loaded the record, and a renewal has seen it.
		j.lease.lose()
		j.leading = false
		return fmt.Errorf("%w: write the journal: %w", errStop, state.ErrConflict)
	}
	j.record.Owner, j.record.DecidedAt, j.record.Version = j.owner, j.lastDecided(), j.stored.Version
	if err := j.write(ctx); err != nil {
		j.leading = false
		return fmt.Errorf("%w: write the journal: %w", errStop, err)
	}
	j.record.Version, j.dirty = j.stored.Version, false
	j.events = append(j.events, j.unsaved...)
	j.unsaved = nil
	return nil
}

// write stores the record. One that is too large for the store is written without what no process needs to continue.
func (j *journal) write(ctx context.Context) error {
	err := j.writeOnce(ctx, j.record.Clone(), config.CallTimeout)
	if !errors.Is(err, state.ErrTooLarge) {
		return err
	}
	j.slimmed = err
	return j.writeOnce(ctx, j.record.Slim(), config.CallTimeout)
}

// writeOnce writes a record, which renews the lease, in the turn of this goroutine.
func (j *journal) writeOnce(ctx context.Context, r state.Record, timeout time.Duration) error {
	began := j.now()
	call, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	written, err := j.store.Save(call, j.pool, r)
	if err != nil {
		return err
	}
	j.stored = written
	j.lease.wrote(written, began)
	return nil
}

// keep renews the lease if this process holds it, whether or not a cycle is under way. Otherwise it reports whether
// the lease is free: a cycle takes it.
func (j *journal) keep(ctx context.Context) (free bool, err error) {
	defer j.use()()
	now := j.now()
	if j.lease.held() {
		if left := j.lease.left(now); left > 0 && j.lease.due(now) {
			return false, j.renew(ctx, left)
		}
		return false, nil
	}
	if err := j.read(ctx); err != nil {
		return false, err
	}
	return j.stored.Owner != j.owner && j.lease.mine(j.stored, j.now()), nil
}

// renew writes the stored record again. After an error it is not known whether that was written, so the next renewal
// reads it first. A record that another process has written ends the lease.
func (j *journal) renew(ctx context.Context, left time.Duration) error {
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
	err := j.writeOnce(ctx, r, min(left, renewAfter))
	switch j.unsure = err != nil; {
	case errors.Is(err, state.ErrConflict):
		j.lease.lose()
		return fmt.Errorf("renew the lease: %w", err)
	case err != nil:
		return fmt.Errorf("renew the lease: %w", err)
	}
	return nil
}

// lastDecided is when the last decision of the process that led was made, as far as it is known.
func (j *journal) lastDecided() time.Time {
	if at := j.decided.Load(); at != nil && at.After(j.record.DecidedAt) {
		return *at
	}
	return j.record.DecidedAt
}

// event notes what will have happened once the journal is saved.
func (j *journal) event(e Event) { j.unsaved = append(j.unsaved, e) }

// happened returns the events of a cycle that ended with an error, or with none. Those of a write that may not have been made are not
// among them.
func (j *journal) happened(err error) []Event {
	if !errors.Is(err, errStop) && !errors.Is(err, errLeaseLost) {
		j.events, j.unsaved = append(j.events, j.unsaved...), nil
	}
	return j.events
}

// release gives the lease back.
func (j *journal) release(ctx context.Context) error {
	r, err := j.fetch(ctx)
	if err != nil {
		return fmt.Errorf("release the lease: %w", err)
	}
	if r.Owner != j.owner {
		return nil
	}
	r.Owner = ""
	j.lease.lose()
	if _, err := j.store.Save(ctx, j.pool, r); err != nil && !errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("release the lease: %w", err)
	}
	return nil
}

// newID returns the id of an action: unique, as a version of the journal is written once, by one owner, and short enough
// for labels, tags and tokens.
func (j *journal) newID(kind string) string {
	now := j.now()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%s|%d|%d", j.pool, j.owner, j.record.Version, now.UnixNano()))
	return fmt.Sprintf("%s-%s-%s", kind, now.UTC().Format("20060102-150405"), hex.EncodeToString(sum[:5]))
}

package nodepool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// errStop ends a tick: what is in the journal is not known any more, or it is not for this process to act on.
var errStop = errors.New("the tick ends here")

// load reads the journal and takes, keeps or watches the lease.
func (t *tick) load(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := t.options.Store.Load(call, t.options.Name)
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	now := t.options.Now()
	if r.Owner != t.options.Owner {
		t.emptySince = time.Time{} // somebody else may have launched
	}
	t.lease.see(r, now)
	t.record, t.loaded = r, true
	trim(&t.record, now, t.spec)
	if !t.lease.mine(r, now, t.spec.Interval) {
		return nil
	}
	if t.lease.left(now) <= 0 {
		t.lease.renewed = time.Time{}
	}
	if t.lease.due(now) {
		if r.Owner != t.options.Owner {
			t.event(Event{Reason: EventLeading, Message: fmt.Sprintf("%s leads the pool now", t.options.Owner)})
		}
		if err := t.save(ctx); err != nil {
			return err
		}
	}
	t.leading = true
	return nil
}

// save writes the journal, which renews the lease. After an error nothing more may be done in this tick.
func (t *tick) save(ctx context.Context) error {
	began := t.options.Now()
	if !t.lease.renewed.IsZero() && t.lease.left(began) <= 0 {
		// Whether somebody else has it is for the store to tell, in the next tick.
		t.lease.renewed = time.Time{}
		return fmt.Errorf("%w: %w", errStop, errLeaseLost)
	}
	t.record.Owner, t.record.DecidedAt = t.options.Owner, t.lastDecided()
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := t.options.Store.Save(call, t.options.Name, t.record)
	if err != nil {
		t.leading = false
		return fmt.Errorf("%w: write the journal: %w", errStop, err)
	}
	t.lease.wrote(r, began)
	t.record, t.dirty = r, false
	t.events = append(t.events, t.unsaved...)
	t.unsaved = nil
	return nil
}

// lastDecided is when the last decision of whoever led was made, as far as it is known.
func (t *tick) lastDecided() time.Time {
	if t.decidedAt.After(t.record.DecidedAt) {
		return t.decidedAt
	}
	return t.record.DecidedAt
}

// event notes what will have happened once the journal is saved.
func (t *tick) event(e Event) { t.unsaved = append(t.unsaved, e) }

// newID returns the id of an action: unique, as a version of the journal is written once, by one owner, and short enough
// for labels, tags and tokens.
func (t *tick) newID(kind string) string {
	now := t.options.Now()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%s|%d|%d", t.options.Name, t.options.Owner, t.record.Version, now.UnixNano()))
	return fmt.Sprintf("%s-%s-%s", kind, now.UTC().Format("20060102-150405"), hex.EncodeToString(sum[:5]))
}

// token returns the token of a slot.
func token(action string, slot int) string { return fmt.Sprintf("%s-%d", action, slot) }

// sparedFor is for how long at least the end of a wait is remembered.
const sparedFor = 24 * time.Hour

// trim forgets what is over, and takes moments that another's clock put into the future for the present: nothing waits
// longer than it may because a clock was wrong.
func trim(r *state.Record, now time.Time, s Spec) {
	for _, at := range []*time.Time{&r.LastUp, &r.LastDown, &r.FailedAt, &r.IdleSince, &r.DecidedAt} {
		notAfter(at, now)
	}
	if a := r.Action; a != nil {
		notAfter(&a.Started, now)
		for i := range a.Slots {
			notAfter(&a.Slots[i].Requested, now)
			notAfter(&a.Slots[i].NotBefore, now.Add(retryMax))
		}
		trimRemovals(a.Targets, now)
	}
	trimRemovals(r.Interruptions, now)
	for i := range r.Condemned {
		notAfter(&r.Condemned[i].Since, now)
		notAfter(&r.Condemned[i].Due, now.Add(s.Join.KeepFailedFor))
	}
	var cooling []plan.Cooling
	for _, c := range r.Cooling {
		longest := coolFor
		if c.Suspected {
			longest = suspectFor
		}
		notAfter(&c.Until, now.Add(longest))
		if c.Until.After(now) {
			cooling = append(cooling, c)
		}
	}
	r.Cooling = cooling
	for id, until := range r.Spared {
		notAfter(&until, now.Add(spareMax))
		r.Spared[id] = until
		if now.Sub(until) > sparedFor {
			delete(r.Spared, id)
			delete(r.FailedDrains, id)
		}
	}
}

func trimRemovals(removals []state.Removal, now time.Time) {
	for i := range removals {
		notAfter(&removals[i].Since, now)
		notAfter(&removals[i].Began, now)
	}
}

func notAfter(at *time.Time, limit time.Time) {
	if at.After(limit) {
		*at = limit
	}
}

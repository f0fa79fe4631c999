package state

import (
	"maps"
	"slices"
	"time"

	"github.com/foresail/foresail/internal/keepalive"
	"github.com/foresail/foresail/nodepool/fleet"
)

// The longest waits in a record.
const (
	RetryMax = time.Minute     // between tries of the same launch
	CoolFor  = 3 * time.Minute // until a placement is tried again after a definitive error
	// SuspectFor is the time for which a zone and type come last after a node there did not join, or
	// EC2 rejected the launch as invalid. It is longer than any wait between failed launches, so the
	// next one goes elsewhere.
	SuspectFor = 55 * time.Minute
	// DrainBackoffMax is the longest wait until a scale-down drains a node again after failed drains.
	// It prevents endless evictions of the same pods.
	DrainBackoffMax = 24 * time.Hour
	// AttemptBackoffMax is the longest wait until a node is launched again for pods that did not use
	// earlier ones.
	AttemptBackoffMax = 24 * time.Hour
	// FutileRemovalBackoffMax is the longest wait until a node is removed again to save money after a
	// futile removal.
	FutileRemovalBackoffMax = 24 * time.Hour
)

// futileWithin is the time after a scale-down within which a launch for its evicted pods shows that
// it has saved nothing, in addition to the delay that the pool applies to such a launch.
const futileWithin = 10 * time.Minute

// drainBackoffKept is the shortest time for which the end of a wait is recorded.
const drainBackoffKept = 24 * time.Hour

// Trim drops what is over, and replaces times in the future, written by another clock, by now: no
// wait becomes longer because a clock was wrong. Failed instances are kept for keepFailedFor, and
// launches may wait for launchDelay after a scale-down.
func (r *Record) Trim(now time.Time, keepFailedFor, launchDelay time.Duration) {
	for _, at := range []*time.Time{&r.LastUp, &r.LastDown, &r.LastSwap, &r.FailedAt, &r.IdleSince,
		&r.SpareSince, &r.DecidedAt} {
		notAfter(at, now)
	}
	if a := r.Action; a != nil {
		notAfter(&a.Started, now)
		for i := range a.Slots {
			notAfter(&a.Slots[i].Requested, now)
			notAfter(&a.Slots[i].NotBefore, now.Add(RetryMax))
		}
		trimRemovals(a.Targets, now)
	}
	trimRemovals(r.Interruptions, now)
	trimRemovals(r.Repairs, now)
	trimRemovals(r.Endings, now)
	for i := range r.PendingTerminations {
		notAfter(&r.PendingTerminations[i].Since, now)
		notAfter(&r.PendingTerminations[i].Due, now.Add(keepFailedFor))
	}
	var cooling []fleet.Cooling
	for _, c := range r.Cooling {
		longest := CoolFor
		if c.Suspected {
			longest = SuspectFor
		}
		notAfter(&c.Until, now.Add(longest))
		if c.Until.After(now.Add(-fleet.RefusedFor)) {
			cooling = append(cooling, c)
		}
	}
	r.Cooling = cooling
	r.trimSavings(now, launchDelay)
	r.Attempts = trimAttempts(r.Attempts, now)
	for id, until := range r.DrainBackoff {
		notAfter(&until, now.Add(DrainBackoffMax))
		r.DrainBackoff[id] = until
		if now.Sub(until) > drainBackoffKept {
			delete(r.DrainBackoff, id)
			delete(r.FailedDrains, id)
		}
	}
}

// ForgetOtherSpecs drops failures with another spec, because the new one may work.
func (r *Record) ForgetOtherSpecs(launchSpec, drainSpec string) {
	if r.LaunchSpec != "" && r.LaunchSpec != launchSpec {
		r.LaunchSpec, r.Failures, r.FailedAt, r.LaunchError = "", 0, time.Time{}, ""
		r.Cooling = slices.DeleteFunc(r.Cooling, func(c fleet.Cooling) bool { return c.Suspected })
	}
	if r.DrainSpec != "" && r.DrainSpec != drainSpec {
		r.DrainSpec, r.DrainBackoff, r.FailedDrains = "", nil, nil
	}
}

func trimRemovals(removals []Removal, now time.Time) {
	for i := range removals {
		notAfter(&removals[i].Since, now)
		notAfter(&removals[i].Began, now)
		notAfter(&removals[i].Deadline, now.Add(fleet.NoticeTime))
	}
}

func notAfter(at *time.Time, limit time.Time) {
	if at.After(limit) {
		*at = limit
	}
}

// trimAttempts drops attempts that nothing has followed for long, and replaces times in the future
// by now.
func trimAttempts(list []Attempt, now time.Time) []Attempt {
	for i := range list {
		one := &list[i]
		notAfter(&one.Began, now)
		notAfter(&one.Joined, now)
		notAfter(&one.Seen, now)
		notAfter(&one.Until, now.Add(AttemptBackoffMax))
	}
	return slices.DeleteFunc(list, func(one Attempt) bool {
		return now.Sub(slices.MaxFunc([]time.Time{one.Began, one.Until}, time.Time.Compare)) > AttemptBackoffMax
	})
}

// trimSavings drops the controllers of a scale-down after which no new node was needed. While
// launches fail that is unknown.
func (r *Record) trimSavings(now time.Time, launchDelay time.Duration) {
	for i := range r.FutileRemovals {
		notAfter(&r.FutileRemovals[i].Until, now.Add(FutileRemovalBackoffMax))
	}
	r.FutileRemovals = slices.DeleteFunc(r.FutileRemovals,
		func(u FutileRemoval) bool { return now.Sub(u.Until) > FutileRemovalBackoffMax })
	s := r.Saved
	if s == nil {
		return
	}
	notAfter(&s.Began, now)
	notAfter(&s.Ended, now)
	if s.Ended.IsZero() || r.Failures > 0 || now.Sub(s.Ended) < futileWithin+launchDelay {
		return
	}
	r.FutileRemovals = slices.DeleteFunc(r.FutileRemovals,
		func(u FutileRemoval) bool { return slices.Contains(s.Owners, u.Owner) })
	r.Saved = nil
}

// Clone returns a copy that shares no mutable part with r.
func (r Record) Clone() Record {
	r.Interruptions, r.Repairs = slices.Clone(r.Interruptions), slices.Clone(r.Repairs)
	r.PendingTerminations, r.Cooling, r.Joins = slices.Clone(r.PendingTerminations),
		slices.Clone(r.Cooling), slices.Clone(r.Joins)
	r.Endings, r.Attempts, r.Demand = slices.Clone(r.Endings), slices.Clone(r.Attempts), r.Demand.Clone()
	r.DrainBackoff, r.FailedDrains = maps.Clone(r.DrainBackoff), maps.Clone(r.FailedDrains)
	r.FutileRemovals = slices.Clone(r.FutileRemovals)
	if r.Saved != nil {
		r.Saved = new(*r.Saved)
	}
	if r.Action != nil {
		a := *r.Action
		a.Slots, a.Targets = slices.Clone(a.Slots), slices.Clone(a.Targets)
		r.Action = &a
	}
	return r
}

// Slim returns the record without everything that no process needs to continue: its texts, and
// learned values about placements, futile launches, demand, and join times. It is for a store that
// refuses the whole record.
func (r Record) Slim() Record {
	r = r.Clone()
	r.eachText(func(text *string) { *text = "" })
	r.Cooling, r.Joins, r.Attempts, r.Demand, r.LaunchError = nil, nil, nil, keepalive.History{}, ""
	r.Saved, r.FutileRemovals = nil, nil
	return r
}

// eachText calls do with each text that is only for people, the most important ones first.
func (r *Record) eachText(do func(*string)) {
	removals := [][]Removal{r.Interruptions, r.Repairs, r.Endings}
	if a := r.Action; a != nil {
		do(&a.Message)
		removals = append(removals, a.Targets)
	}
	for _, list := range removals {
		for i := range list {
			do(&list[i].Error)
		}
	}
	for i := range r.Cooling {
		do(&r.Cooling[i].Reason)
	}
	if r.Action == nil {
		return
	}
	for i := range r.Action.Slots {
		do(&r.Action.Slots[i].Error)
	}
}

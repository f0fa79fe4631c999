package forecaster

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// readiness lets Ready answer at once, however many PredictedMetrics there are.
type readiness struct {
	startedAt, lastRound atomic.Pointer[time.Time] // nil: not yet
	validUntil           atomic.Pointer[time.Time] // until when a snapshot counts; nil: there was none
	settled              atomic.Bool               // every PredictedMetric has had its time to get data
	seen                 atomic.Int64              // how many feeds the last round knew; -1: there was none
	waiting              atomic.Int64              // how many waited for their first data after the last round
}

func (r *readiness) start(now time.Time) {
	r.lastRound.Store(&now)
	r.startedAt.Store(&now)
}

// endRound records a round over feeds, before which so many had been added.
func (r *readiness) endRound(feeds []*Feed, added int64, now time.Time) {
	if !r.settled.Load() {
		r.waiting.Store(int64(count(feeds, (*Feed).awaitsData)))
		r.seen.Store(added)
	}
	r.lastRound.Store(&now)
}

// maxCredit bounds how long a snapshot that lasts longer than others, as its owner says so, counts for all of them.
const maxCredit = 30 * time.Second

// extendValidity notes that a snapshot is valid until a time. It counts for at most maxCredit from now on.
func (r *readiness) extendValidity(until, now time.Time) {
	latest := now.Add(maxCredit)
	if until.After(latest) {
		until = latest
	}
	for {
		known := r.validUntil.Load()
		keep := known != nil && !until.After(*known) && !known.After(latest) // later than that: the clock was set back
		if keep || r.validUntil.CompareAndSwap(known, &until) {
			return
		}
	}
}

// anyValid reports whether a snapshot that was valid when it was made still is, and was made lately.
func (r *readiness) anyValid(now time.Time) bool {
	until := r.validUntil.Load()
	return until != nil && !now.After(*until) && !until.After(now.Add(maxCredit))
}

func count(feeds []*Feed, is func(*Feed) bool) (n int) {
	for _, feed := range feeds {
		if is(feed) {
			n++
		}
	}
	return n
}

const (
	// startLimit is how long a start waits for the first data of every PredictedMetric.
	startLimit = time.Minute
	// stallLimit is after how long without a round of forecasts a forecaster none of whose snapshots is
	// valid is not ready.
	stallLimit = 10 * Period
)

// check returns why there is no data to serve, nil if there is. After the start it waits until
// every PredictedMetric whose target has ready pods has been read for long enough, at most a
// minute: a rolling update of the adapter leaves no gap. Later one PredictedMetric without data
// does not count: an error with a reason is better than an unreachable server. Nor do rounds that
// take long count while snapshots are valid: under overload all replicas would be unready at once,
// and no value would be read. Added is how many feeds there have been.
func (r *readiness) check(now time.Time, added int64) error {
	started := r.startedAt.Load()
	if started == nil {
		return errors.New("the forecaster has not started")
	}
	if idle := now.Sub(*r.lastRound.Load()); idle > stallLimit && !r.anyValid(now) {
		return fmt.Errorf("no forecast for %s", idle.Round(time.Second))
	}
	if r.settled.Load() {
		return nil
	}
	if now.Sub(*started) <= startLimit {
		if r.seen.Load() != added {
			return errors.New("not every PredictedMetric has been forecast for the first time")
		}
		if waiting := r.waiting.Load(); waiting > 0 {
			return fmt.Errorf("%d PredictedMetrics wait for their first data", waiting)
		}
	}
	r.settled.Store(true)
	return nil
}

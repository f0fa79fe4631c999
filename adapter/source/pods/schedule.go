package pods

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/source"
)

const (
	// tick is the shortest time between two checks of the queue: scrapes due within it start together.
	tick = time.Millisecond
	// idle is the time between two checks of an empty queue.
	idle = time.Hour
)

// Run reads until ctx ends, and returns when no scrape is running. It can be called once.
func (s *Source) Run(ctx context.Context) error {
	defer s.client.CloseIdleConnections()
	defer s.scraping.Wait()
	s.reschedule()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-timer.C:
		}
		timer.Reset(max(tick, s.dispatch(ctx)))
	}
}

// reschedule moves the scrapes that fell due before Run to their next moment.
func (s *Source) reschedule() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.epoch)
	for _, e := range s.queue {
		e.due = e.nextDue(now)
	}
	heap.Init(&s.queue)
}

// dispatch starts the scrapes that are due and returns the time until the next one.
func (s *Source) dispatch(ctx context.Context) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.epoch)
	if now-s.pacing.counted >= recountInterval {
		s.pacing.countDemand(s.queue, now)
	}
	for len(s.queue) > 0 {
		e := s.queue[0]
		if e.due > now {
			return e.due - now
		}
		due := e.due
		missed := (now - due) / e.key.interval
		s.telemetry.skipped.Add(float64(missed))
		if n := s.pacing.intervalFactor(e); n != e.pace {
			e.pace = n
			e.slowed.Store(&slowness{s.pacing.slowedError(e)})
		}
		e.due = due + (missed+time.Duration(e.pace))*e.key.interval
		heap.Fix(&s.queue, 0)
		if int64(due) >= e.resume.Load() && e.hasAcceptingReader() {
			s.beginScrape(ctx, e)
		}
	}
	return idle
}

// beginScrape reads an endpoint as soon as a slot is free, unless it waits for one or is read already.
//
// From here on exactly one owner has the endpoint: it is busy until scrapeWithSlot marks it free.
// acquireSlot waits for a slot, runSlot is the goroutine that owns the slot, scrapeWithSlot reads one
// endpoint with it, and scrape and fetchPage do the request.
func (s *Source) beginScrape(ctx context.Context, e *endpoint) {
	if e.busy.Swap(true) {
		s.telemetry.skipped.Inc()
		return
	}
	l := s.quick
	if e.suspect.Load() {
		l = s.slow
	}
	s.acquireSlot(ctx, e, l)
}

// acquireSlot reads a busy endpoint as soon as the limiter has a slot for it.
func (s *Source) acquireSlot(ctx context.Context, e *endpoint, l *namespaceLimiter) {
	if l.acquire(e) {
		s.runSlot(ctx, e, l)
	}
}

// runSlot starts the goroutine that owns a slot. It reads the endpoint that the slot was acquired for,
// and then each endpoint that the slot is passed on to.
func (s *Source) runSlot(ctx context.Context, e *endpoint, l *namespaceLimiter) {
	s.scraping.Go(func() {
		for e != nil {
			e, l = s.scrapeWithSlot(ctx, e, l)
		}
	})
}

// scrapeWithSlot reads an endpoint with a slot of a limiter, and releases the slot. It returns the
// endpoint that has the slot next, and the slot's limiter, which may have changed meanwhile.
func (s *Source) scrapeWithSlot(ctx context.Context, e *endpoint,
	l *namespaceLimiter) (next *endpoint, _ *namespaceLimiter) {
	scrape, cancel, ok := e.enter(ctx)
	if !ok {
		e.busy.Store(false)
		return l.release(e), l
	}
	defer cancel()
	held := &slot{limiter: l}
	if l == s.quick {
		timer := time.AfterFunc(slowAfter, func() { s.moveToSlowSlot(ctx, e, held, cancel) })
		defer timer.Stop()
	}
	cancelled := s.scrape(scrape, e)
	l, displaced := held.end()
	next = l.release(e)
	if cancelled && displaced {
		s.acquireSlot(ctx, e, s.slow)
	} else {
		e.busy.Store(false)
	}
	return next, l
}

// moveToSlowSlot moves an endpoint that has used a quick slot for slowAfter to a slow slot, and passes
// the quick slot on. If no slow slot is free, it cancels the scrape, which starts again once a slow
// slot is.
func (s *Source) moveToSlowSlot(ctx context.Context, e *endpoint, x *slot, cancel context.CancelFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	e.suspect.Store(true)
	if !s.slow.tryAcquire(e) {
		x.displaced = true
		cancel()
		return
	}
	x.limiter = s.slow
	if next := s.quick.release(e); next != nil {
		s.runSlot(ctx, next, s.quick) // x has not ended, so s.scraping is above 0
	}
}

// slot is the slot of an endpoint while it is read.
type slot struct {
	mu        sync.Mutex
	limiter   *namespaceLimiter
	displaced bool // the scrape was ended because it was slow
	ended     bool
}

// end ends the use of a slot, so that it is not moved any more. It returns the limiter, and whether the
// endpoint was displaced.
func (x *slot) end() (*namespaceLimiter, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	return x.limiter, x.displaced
}

// recordOutcome records whether a scrape failed and how long it took, and delays the next one after
// repeated failures.
func (s *Source) recordOutcome(e *endpoint, failed bool, took time.Duration) {
	e.suspect.Store(failed || took > slowAfter)
	if !failed {
		e.failures = 0
		return
	}
	e.failures++
	if e.failures > 1 { // a single failure may be transient
		wait := source.Backoff(e.failures, e.key.interval, s.options.MaxBackoff) // from the beginning of the scrape
		// Half an interval less, so that the moment after the wait is the endpoint's own.
		e.resume.Store(int64(time.Since(s.epoch) - took + wait - e.key.interval/2))
	}
}

// queue is a heap of endpoints, the one due next first.
type queue []*endpoint

func (q *queue) push(e *endpoint) { heap.Push(q, e) }

func (q *queue) remove(e *endpoint) { heap.Remove(q, e.index) }

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].due < q[j].due }

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	e := x.(*endpoint)
	e.index = len(*q)
	*q = append(*q, e)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}

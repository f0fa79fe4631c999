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

// Run reads until ctx ends, and returns when no scrape is running any more. It can be called once.
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
		e.due = e.next(now)
	}
	heap.Init(&s.queue)
}

// dispatch starts the scrapes that are due and returns the time until the next one.
func (s *Source) dispatch(ctx context.Context) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.epoch)
	if now-s.pacing.counted >= recount {
		s.pacing.count(s.queue, now)
	}
	for len(s.queue) > 0 {
		e := s.queue[0]
		if e.due > now {
			return e.due - now
		}
		due := e.due
		missed := (now - due) / e.key.interval
		s.telemetry.skipped.Add(float64(missed))
		if n := s.pacing.stretch(e); n != e.pace {
			e.pace = n
			e.slowed.Store(&slowness{s.pacing.slowed(e)})
		}
		e.due = due + (missed+time.Duration(e.pace))*e.key.interval
		heap.Fix(&s.queue, 0)
		if int64(due) >= e.resume.Load() && e.desired() {
			s.begin(ctx, e)
		}
	}
	return idle
}

// begin reads an endpoint as soon as a slot is free, unless it is being read.
func (s *Source) begin(ctx context.Context, e *endpoint) {
	if e.busy.Swap(true) {
		s.telemetry.skipped.Inc()
		return
	}
	l := s.quick
	if e.suspect.Load() {
		l = s.slow
	}
	s.enqueue(ctx, e, l)
}

// enqueue reads a busy endpoint as soon as a lane has a slot for it.
func (s *Source) enqueue(ctx context.Context, e *endpoint, l *lane) {
	if l.take(e) {
		s.start(ctx, e, l)
	}
}

// start reads an endpoint that has a slot of a lane, and then those that wait for the slot.
func (s *Source) start(ctx context.Context, e *endpoint, l *lane) {
	s.scraping.Go(func() {
		for e != nil {
			e, l = s.occupy(ctx, e, l)
		}
	})
}

// occupy reads an endpoint that has a slot of a lane. It returns the endpoint that has the slot next, and the slot's lane,
// which may be another one by then.
func (s *Source) occupy(ctx context.Context, e *endpoint, l *lane) (next *endpoint, _ *lane) {
	scrape, cancel, ok := e.enter(ctx)
	if !ok {
		e.busy.Store(false)
		return l.release(e), l
	}
	defer cancel()
	x := &slot{lane: l}
	if l == s.quick {
		timer := time.AfterFunc(slowAfter, func() { s.handOver(ctx, e, x, cancel) })
		defer timer.Stop()
	}
	cancelled := s.scrape(scrape, e)
	l, displaced := x.end()
	next = l.release(e)
	if cancelled && displaced {
		s.enqueue(ctx, e, s.slow)
	} else {
		e.busy.Store(false)
	}
	return next, l
}

// handOver gives an endpoint that has used a quick slot for slowAfter a slow one, and the quick one to the next endpoint.
// If no slow slot is free the scrape ends, and begins anew when its turn comes.
func (s *Source) handOver(ctx context.Context, e *endpoint, x *slot, cancel context.CancelFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	e.suspect.Store(true)
	if !s.slow.takeFree(e) {
		x.displaced = true
		cancel()
		return
	}
	x.lane = s.slow
	if next := s.quick.release(e); next != nil {
		s.start(ctx, next, s.quick) // x has not ended, so s.scraping is above 0
	}
}

// slot is what an endpoint has while it is read.
type slot struct {
	mu        sync.Mutex
	lane      *lane
	displaced bool // the scrape was ended because it was slow
	ended     bool
}

// end keeps the slot from being handed over, and returns its lane, and whether the endpoint was displaced from it.
func (x *slot) end() (*lane, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	return x.lane, x.displaced
}

// settle records how a scrape went, and delays the next one if it failed.
func (s *Source) settle(e *endpoint, failed bool, took time.Duration) {
	e.suspect.Store(failed || took > slowAfter)
	if !failed {
		e.failures = 0
		return
	}
	e.failures++
	if e.failures > 1 { // one failure is a blip
		wait := source.Backoff(e.failures, e.key.interval, s.options.MaxBackoff) // from the beginning of the scrape
		// Half an interval less, so that the moment after the wait is the endpoint's own.
		e.resume.Store(int64(time.Since(s.epoch) - took + wait - e.key.interval/2))
	}
}

// queue is a heap of endpoints, the next one due first.
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

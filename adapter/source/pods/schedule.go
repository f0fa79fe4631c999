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
	for len(s.queue) > 0 {
		e := s.queue[0]
		if e.due > now {
			return e.due - now
		}
		due := e.due
		missed := (now - due) / e.key.interval
		s.telemetry.skipped.Add(float64(missed))
		e.due = due + (missed+1)*e.key.interval
		heap.Fix(&s.queue, 0)
		if int64(due) >= e.resume.Load() {
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
	if l.take(e) {
		s.scraping.Go(func() {
			for next := e; next != nil; next = l.next() {
				s.scrape(ctx, next)
				next.busy.Store(false)
			}
		})
	}
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

// lane limits how many endpoints of a kind are read at the same time. The others wait in order.
type lane struct {
	slots int

	mu      sync.Mutex
	taken   int
	waiting []*endpoint
}

// take takes a slot for an endpoint, or queues it.
func (l *lane) take(e *endpoint) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken == l.slots {
		l.waiting = append(l.waiting, e)
		return false
	}
	l.taken++
	return true
}

// next passes a slot on to the endpoint that has waited longest, or frees it if there is none.
func (l *lane) next() *endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.taken--
		l.waiting = nil
		return nil
	}
	e := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	return e
}

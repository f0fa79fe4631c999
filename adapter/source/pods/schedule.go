package pods

import (
	"container/heap"
	"context"
	"time"

	"github.com/foresail/foresail/adapter/source"
)

const (
	// tick is the shortest time between two looks at the queue: what falls due within it is begun together.
	tick = time.Millisecond
	// idle is how long the queue is left alone while it is empty.
	idle = time.Hour
)

// Run reads until ctx ends, and returns when no scrape is under way any more. It can be called once.
func (s *Source) Run(ctx context.Context) error {
	defer s.client.CloseIdleConnections()
	defer s.scraping.Wait()
	defer s.stop()
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
		timer.Reset(max(tick, s.dispatch()))
	}
}

// reschedule makes what fell due while nothing was read due anew.
func (s *Source) reschedule() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.epoch)
	for _, e := range s.queue {
		e.due = e.next(now)
	}
	heap.Init(&s.queue)
}

// dispatch begins what is due and returns how long until the next is.
func (s *Source) dispatch() time.Duration {
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
			s.begin(e)
		}
	}
	return idle
}

// begin has an endpoint read as soon as a slot is free, unless it still is being read.
func (s *Source) begin(e *endpoint) {
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
				s.scrape(next)
				next.busy.Store(false)
			}
		})
	}
}

// settle draws the conclusions from how a scrape went.
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

// queue is the endpoints by when they are due, a heap.
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

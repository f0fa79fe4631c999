package workload

import (
	"container/list"
	"time"
)

// queue is a server that takes one job at a time, first come, first served, in virtual time: when a
// job ends follows from arrivals and service times alone, so a timer that fires late delays nothing
// after it.
//
// Times are spans since an origin of the caller's choice. Each method that takes now moves the
// queue there first; now never falls from one call to the next. The zero value is an idle queue at
// the origin.
type queue struct {
	current *job      // in service; nil: idle, and then nothing waits
	waiting list.List // of *job, in order of arrival
	busy    busyLog
	served  uint64
}

// job is one request's place in a queue.
type job struct {
	service time.Duration
	finish  time.Duration // set when service starts
	done    chan struct{} // closed when service has ended
	place   *list.Element // nil once service has started
}

// arrive adds a job that needs the server for the span service.
func (q *queue) arrive(now, service time.Duration) *job {
	q.advance(now)
	j := &job{service: service, done: make(chan struct{})}
	if q.current == nil {
		q.start(j, now)
	} else {
		j.place = q.waiting.PushBack(j)
	}
	return j
}

// abandon takes a job out that has not started and reports whether it did; a job in service is
// served to its end.
func (q *queue) abandon(now time.Duration, j *job) bool {
	q.advance(now)
	if j.place == nil {
		return false
	}
	q.waiting.Remove(j.place)
	j.place = nil
	return true
}

// advance ends every job that is finished by now and starts those that follow it.
func (q *queue) advance(now time.Duration) {
	for q.current != nil && q.current.finish <= now {
		ended := q.current
		q.current = nil
		q.served++
		close(ended.done)
		if front := q.waiting.Front(); front != nil {
			next := q.waiting.Remove(front).(*job)
			next.place = nil
			q.start(next, ended.finish)
		}
	}
	q.busy.forget(now - utilizationWindow)
}

func (q *queue) start(j *job, at time.Duration) {
	j.finish = at + j.service
	q.current = j
	q.busy.add(at, j.finish)
}

// length counts the jobs waiting and in service.
func (q *queue) length() int {
	if q.current == nil {
		return 0
	}
	return 1 + q.waiting.Len()
}

// busyLog remembers when a server was, or is bound to be, busy.
type busyLog struct {
	spans []span        // in order, apart from each other
	total time.Duration // length of all spans ever added
}

type span struct{ from, to time.Duration }

// add appends a span that begins at or after the end of the last one.
func (b *busyLog) add(from, to time.Duration) {
	b.total += to - from
	if last := len(b.spans) - 1; last >= 0 && b.spans[last].to == from {
		b.spans[last].to = to
		return
	}
	b.spans = append(b.spans, span{from, to})
}

// forget drops the spans that ended by the given time.
func (b *busyLog) forget(until time.Duration) {
	gone := 0
	for gone < len(b.spans) && b.spans[gone].to <= until {
		gone++
	}
	b.spans = b.spans[gone:]
}

// between sums busy time from one time to another; spans forgotten count as idle.
func (b *busyLog) between(from, to time.Duration) time.Duration {
	var sum time.Duration
	for _, s := range b.spans {
		sum += max(0, min(s.to, to)-max(s.from, from))
	}
	return sum
}

// until sums all busy time up to now, at which the last span may still be running.
func (b *busyLog) until(now time.Duration) time.Duration {
	if len(b.spans) == 0 {
		return b.total
	}
	return b.total - max(0, b.spans[len(b.spans)-1].to-now)
}

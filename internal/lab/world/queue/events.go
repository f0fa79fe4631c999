package queue

import "slices"

// deque is a queue with two ends.
type deque struct {
	ring []int32 // its length is a power of two
	head int
	n    int
}

func (q *deque) len() int { return q.n }

func (q *deque) pushBack(v int32) {
	q.grow()
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = v
	q.n++
}

func (q *deque) pushFront(v int32) {
	q.grow()
	q.head = (q.head - 1) & (len(q.ring) - 1)
	q.ring[q.head] = v
	q.n++
}

func (q *deque) popFront() int32 {
	v := q.ring[q.head]
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return v
}

func (q *deque) grow() {
	if q.n < len(q.ring) {
		return
	}
	ring := make([]int32, max(16, 2*len(q.ring)))
	n := copy(ring, q.ring[q.head:])
	copy(ring[n:], q.ring[:q.head])
	q.ring, q.head = ring, 0
}

// timers are a few events, the last of which is the first to happen.
type timers []timer

type timer struct {
	at      float64
	request int32
}

func (ts *timers) add(at float64, request int32) {
	i := len(*ts)
	for i > 0 && (*ts)[i-1].at <= at {
		i--
	}
	*ts = slices.Insert(*ts, i, timer{at, request})
}

func (ts timers) len() int { return len(ts) }

// at returns when the first happens.
func (ts timers) at() float64 {
	if len(ts) == 0 {
		return never
	}
	return ts[len(ts)-1].at
}

func (ts *timers) take() int32 {
	last := len(*ts) - 1
	r := (*ts)[last].request
	*ts = (*ts)[:last]
	return r
}

// timeouts are those of requests in order of arrival, which is the order in which they run out.
type timeouts struct {
	all  []timeout
	head int
}

type timeout struct {
	at      float64
	request int32
	life    uint32 // of the request; it has ended where its place has another one
}

func (ts *timeouts) add(t timeout) {
	if ts.head > 1024 && ts.head > len(ts.all)/2 {
		ts.all = ts.all[:copy(ts.all, ts.all[ts.head:])]
		ts.head = 0
	}
	ts.all = append(ts.all, t)
}

// skip passes over timeouts of requests that have ended.
func (ts *timeouts) skip(requests []request) {
	for ts.head < len(ts.all) && requests[ts.all[ts.head].request].life != ts.all[ts.head].life {
		ts.head++
	}
}

func (ts *timeouts) at() float64 {
	if ts.head == len(ts.all) {
		return never
	}
	return ts.all[ts.head].at
}

func (ts *timeouts) take() int32 {
	r := ts.all[ts.head].request
	ts.head++
	return r
}

package queue

import (
	"math"
	"slices"

	"github.com/foresail/foresail/internal/lab"
)

// never is the time of an event that is not planned.
var never = math.Inf(1)

// server is a pod: one event loop, that runs pieces of requests one after the other. Servers do not
// know of each other, so each is played on its own, up to where something from outside happens to
// it.
type server struct {
	pod    lab.Pod
	w      *World
	slow   float64 // time that a millisecond of work takes it
	known  float64 // when the proxy learns of it
	turn   float64 // when it is its turn at the proxy
	next   float64 // when something next happens
	flight int     // requests that a client waits for

	requests []request
	free     []int32 // unused places in requests
	queue    deque   // requests with a piece to run
	running  int32   // the request whose pieces run, idle for none
	ends     float64 // when they will have
	since    float64 // from when on the loop has been busy without its having been counted

	waiting  timers // requests that wait for something else
	failing  timers // requests that fail without having been looked at
	timeouts timeouts
}

const idle int32 = -1

// request is one that a pod works on.
type request struct {
	number  int32 // in order of arrival over all pods
	life    uint32
	arrived float64
	piece   float64 // time that each piece takes
	draws   draws
	waits   uint64 // bit i: wait when i pieces are left
	left    int8   // pieces that have not run
	given   bool   // its client has given up
	dropped bool   // its remaining work is skipped
}

// arrive takes a request in. The server has been played to that time.
func (s *server) arrive(t float64, number int) {
	m := &s.w.model
	d := drawsOf(s.w.seed, number)
	s.pod.Requests.Add(int64(t), 1)
	s.flight++
	if chance := d.float(); s.flight > m.FailAbove && chance < m.FailShare {
		latency := d.between(0, m.FailWithin)
		s.w.log.end(number, rejected, latency)
		s.failing.add(t+latency, 0)
	} else {
		i := s.place()
		s.requests[i] = s.w.request(d, s.slow, s.requests[i].life)
		s.requests[i].number, s.requests[i].arrived = int32(number), t
		s.timeouts.add(timeout{t + m.Timeout, i, s.requests[i].life})
		s.enqueue(t, i)
	}
	s.plan()
}

// play runs what happens until a time.
func (s *server) play(until float64) {
	for s.next <= until {
		switch t := s.next; t {
		case s.ends:
			s.ran(t)
		case s.waiting.at():
			s.enqueue(t, s.waiting.take())
		case s.failing.at():
			s.failing.take()
			s.leave()
		default:
			s.giveUp(s.timeouts.take())
		}
		s.plan()
	}
}

// plan finds out when something next happens.
func (s *server) plan() {
	s.timeouts.skip(s.requests)
	s.next = min(s.ends, s.waiting.at(), s.failing.at(), s.timeouts.at())
}

// enqueue has a request wait for the loop, which takes it at once if it is idle.
func (s *server) enqueue(t float64, i int32) {
	r := &s.requests[i]
	if r.draws.float() < s.w.model.Jump {
		s.queue.pushFront(i)
	} else {
		s.queue.pushBack(i)
	}
	if s.running == idle {
		s.since = t
		s.run(t)
	}
}

// run starts the first request in the queue. Pieces that go to the front of the queue run right
// after the one before: what else comes to the front in the meantime comes behind them.
func (s *server) run(t float64) {
	for s.queue.len() > 0 {
		i := s.queue.popFront()
		r := &s.requests[i]
		if r.dropped {
			s.vacate(i)
			continue
		}
		for again := true; again; again = r.left > 0 && r.waits>>r.left&1 == 0 && r.draws.float() < s.w.model.Jump {
			r.left--
			t += r.piece
		}
		s.running, s.ends = i, t
		return
	}
	s.count(t)
	s.running, s.ends = idle, never
}

// ran has the loop go on to another request.
func (s *server) ran(t float64) {
	i := s.running
	r := &s.requests[i]
	switch {
	case r.left == 0:
		if !r.given {
			s.w.log.end(int(r.number), succeeded, t-r.arrived)
			s.leave()
		}
		s.vacate(i)
	case r.dropped:
		s.vacate(i)
	case r.waits>>r.left&1 == 1:
		s.waiting.add(t+r.draws.between(s.w.model.WaitMin, s.w.model.WaitMax), i)
	default:
		s.queue.pushBack(i)
	}
	s.run(t)
}

// giveUp has the client of a request stop waiting for it.
func (s *server) giveUp(i int32) {
	r := &s.requests[i]
	r.given = true
	r.dropped = r.draws.float() >= s.w.model.StillRuns
	s.w.log.end(int(r.number), timedOut, s.w.model.Timeout)
	s.leave()
}

// leave counts a client that waits no longer.
func (s *server) leave() {
	s.flight--
	s.w.users--
}

// count adds the time the loop has been busy until now to what the pod shows.
func (s *server) count(t float64) {
	for s.since < t {
		end := min(t, (math.Floor(s.since/1000)+1)*1000)
		s.pod.Busy.Add(int64(s.since), (end-s.since)/1000)
		s.since = end
	}
}

// done reports that the server has been removed and has nothing left to do.
func (s *server) done() bool {
	return s.pod.Ended != lab.Never && s.running == idle && s.flight == 0 && s.waiting.len() == 0
}

// place returns a place for a request.
func (s *server) place() int32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	s.requests = append(s.requests, request{})
	return int32(len(s.requests) - 1)
}

// vacate makes the place of a request free for another.
func (s *server) vacate(i int32) {
	s.requests[i].life++
	s.free = append(s.free, i)
}

// proxy sends requests to pods by weighted round robin: a pod's next turn is one over its weight
// after its last one, and the pod whose turn is first gets the request.
type proxy struct {
	pods []*server // that it sends to, in the order it learned of them
	turn float64   // the last turn that was taken
}

// learn makes a pod known.
func (p *proxy) learn(s *server, weight float64) {
	s.turn = p.turn + 1/weight
	p.pods = append(p.pods, s)
}

// forget has a pod get no more requests.
func (p *proxy) forget(s *server) {
	p.pods = slices.DeleteFunc(p.pods, func(o *server) bool { return o == s })
}

// pick returns the pod that gets a request, or nil where none is known.
func (p *proxy) pick() *server {
	var first *server
	for _, s := range p.pods {
		if first == nil || s.turn < first.turn {
			first = s
		}
	}
	return first
}

// took moves a pod's turn on after it got a request.
func (p *proxy) took(s *server, weight float64) {
	p.turn = s.turn
	s.turn += 1 / weight
}

// weight is a pod's share of a full turn at a time: that of a new one rises with the time since the
// proxy knows it, as in Envoy's slow start, which is linear and cut off from below.
func (m *Model) weight(s *server, t float64) float64 {
	if t >= s.known+m.SlowStart {
		return 1
	}
	return max(m.SlowStartFrom, (t-s.known)/m.SlowStart)
}

package queue

import (
	"math"
	"slices"
	"strconv"

	"github.com/foresail/foresail/internal/lab"
)

const (
	kept    = 600_000 // for how long pods that ended stay in the view, in ms
	sampled = 100     // how far apart the rate is sampled for the mean of a second, in ms
)

// World is a [lab.World] in which each request is played.
type World struct {
	config Config
	model  Model
	seed   uint64
	costs  []Route // routes with the summed share up to each, and what it costs in ms

	now      int64
	arrivals *arrivals
	proxy    proxy
	pods     []*server // in order of creation, those that ended a while ago left out
	made     int       // pods that were ever created
	coming   float64   // when the proxy next learns of a pod
	refresh  float64   // when the proxy first looks for pods
	users    int       // clients that wait for an answer, and those that have got one from a server not played since

	log    log
	target int
	rose   int64
	fell   int64
	view   lab.View
}

// New returns a world at time 0.
func New(c Config) *World {
	w := &World{config: c, model: c.Model, seed: c.Seed, costs: costs(c.Model), arrivals: newArrivals(c), coming: never,
		rose: -1, fell: -1}
	w.refresh = lab.Random(c.Seed, "proxy").Float64() * c.Model.Refresh
	for range c.Warm {
		s := w.create()
		s.pod.Ready, s.known = 0, math.Inf(-1)
		w.proxy.learn(s, 1)
	}
	w.coming = never
	w.target = c.Warm
	return w
}

// costs returns the routes with shares summed up to 1 and costs that are [Model.Service] on average.
func costs(m Model) []Route {
	routes := m.Routes
	if len(routes) == 0 {
		routes = []Route{{1, 1}}
	}
	var shares, mean float64
	for _, r := range routes {
		shares += r.Share
		mean += r.Share * r.Cost
	}
	out := make([]Route, len(routes))
	var sum float64
	for i, r := range routes {
		sum += r.Share / shares
		out[i] = Route{Share: sum, Cost: r.Cost * m.Service * shares / mean}
	}
	return out
}

// request draws what a request asks of a pod.
func (w *World) request(d draws, slow float64, life uint32) request {
	m := &w.model
	n := d.int(m.ChunksMin, m.ChunksMax)
	route, which := 0, d.float()
	for route < len(w.costs)-1 && which >= w.costs[route].Share {
		route++
	}
	r := request{life: life, piece: w.costs[route].Cost * slow / float64(n), left: int8(n)}
	for waits := min(d.int(m.WaitsMin, m.WaitsMax), n-1); waits > 0; {
		if bit := uint64(1) << d.int(1, n-1); r.waits&bit == 0 {
			r.waits |= bit
			waits--
		}
	}
	r.draws = d
	return r
}

// Advance implements [lab.World].
func (w *World) Advance(to int64) {
	for {
		t, ok := w.arrivals.next(to)
		if !ok {
			break
		}
		w.arrivals.take()
		w.arrive(t)
	}
	w.now = to
	w.learn(float64(to))
	w.play(float64(to))
	for _, s := range w.pods {
		if s.running != idle {
			s.count(float64(to))
		}
	}
	w.pods = slices.DeleteFunc(w.pods, func(s *server) bool { return s.done() && s.pod.Ended < to-kept })
}

// arrive has a client send a request, if there is one to send it.
func (w *World) arrive(t float64) {
	number := w.log.begin(t)
	if w.users >= w.model.Users {
		w.play(t)
	}
	if w.users >= w.model.Users {
		w.log.end(number, dropped, 0)
		return
	}
	w.learn(t)
	s := w.proxy.pick()
	if s == nil {
		w.log.end(number, rejected, 0)
		return
	}
	w.proxy.took(s, w.model.weight(s, t))
	w.users++
	s.play(t)
	s.arrive(t, number)
}

// play has all pods catch up.
func (w *World) play(until float64) {
	for _, s := range w.pods {
		s.play(until)
	}
}

// learn has the proxy know pods that it could have found by now.
func (w *World) learn(t float64) {
	if t < w.coming {
		return
	}
	w.coming = never
	for _, s := range w.pods {
		switch {
		case s.pod.Ended != lab.Never || slices.Contains(w.proxy.pods, s):
		case s.known <= t:
			w.proxy.learn(s, w.model.weight(s, t))
		default:
			w.coming = min(w.coming, s.known)
		}
	}
}

// create makes the next pod.
func (w *World) create() *server {
	m := &w.model
	id := strconv.Itoa(w.made)
	w.made++
	r := lab.Random(w.seed, "pod/"+id)
	s := &server{w: w, running: idle, ends: never, next: never}
	s.slow = math.Exp(m.SpeedSigma*m.SpeedSigma/2 - m.SpeedSigma*r.NormFloat64())
	ready := math.Round(float64(w.now) + m.Startup + m.StartupSpread*(2*r.Float64()-1))
	s.pod = lab.Pod{ID: id, Created: w.now, Ready: int64(ready), Ended: lab.Never}
	s.known = w.refreshed(ready + m.Notice*r.Float64())
	w.coming = min(w.coming, s.known)
	w.pods = append(w.pods, s)
	return s
}

// refreshed returns when the proxy next looks for pods.
func (w *World) refreshed(t float64) float64 {
	if w.model.Refresh == 0 {
		return t
	}
	return w.refresh + math.Ceil((t-w.refresh)/w.model.Refresh)*w.model.Refresh
}

// SetTarget implements [lab.World].
func (w *World) SetTarget(n int) {
	if n > w.target {
		w.rose = w.now
	} else if n < w.target {
		w.fell = w.now
	}
	w.target = n
	alive := w.alive()
	for range n - len(alive) {
		w.create()
	}
	slices.SortStableFunc(alive, func(a, b *server) int {
		switch ra, rb := a.pod.IsReady(w.now), b.pod.IsReady(w.now); {
		case ra && !rb:
			return -1
		case rb && !ra:
			return 1
		}
		return 0
	})
	for len(alive) > n {
		w.remove(alive[len(alive)-1])
		alive = alive[:len(alive)-1]
	}
}

func (w *World) remove(s *server) {
	s.pod.Ended = w.now
	if s.pod.Ready > w.now {
		s.pod.Ready = lab.Never
	}
	w.proxy.forget(s)
}

// alive returns the pods that have not been removed, in order of creation.
func (w *World) alive() []*server {
	var out []*server
	for _, s := range w.pods {
		if s.pod.Ended == lab.Never {
			out = append(out, s)
		}
	}
	return out
}

// View implements [lab.World].
func (w *World) View() *lab.View {
	v := &w.view
	*v = lab.View{
		Now: w.now, Pods: v.Pods[:0], Target: w.target, Rose: w.rose, Fell: w.fell, Min: w.config.Min,
		Max: w.config.Max,
	}
	for _, s := range w.pods {
		if s.pod.Ended >= w.now-kept {
			v.Pods = append(v.Pods, &s.pod)
		}
	}
	return v
}

// Second implements [lab.World].
func (w *World) Second() lab.Second {
	rate := 0.0
	for t := w.now - 1000; t < w.now; t += sampled {
		rate += w.config.Load.Rate(t+sampled/2) * sampled / 1000
	}
	return lab.Second{
		Rate:    rate,
		Offered: rate * w.model.Service / 1000,
		Pods:    len(w.alive()),
		Ready:   len(w.proxy.pods),
		Target:  w.target,
	}
}

// Requests returns the figures of the requests that arrived at a time, a whole second, or later. It
// plays on, without arrivals, until all of them have an answer, so the world must not be advanced
// after.
func (w *World) Requests(from int64) Requests {
	w.play(float64(w.now) + max(w.model.Timeout, w.model.FailWithin))
	return w.log.between(from/1000, math.MaxInt64)
}

// Between returns the figures of the requests that arrived from one time on and before another,
// both whole seconds, once Requests has played them to their end.
func (w *World) Between(from, to int64) Requests { return w.log.between(from/1000, to/1000) }

package queue

import "slices"

// proxy sends requests to pods by weighted round robin: a pod's next turn is one over its weight after its last one, and
// the pod whose turn is first gets the request.
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

// weight is a pod's share of a full turn at a time: that of a new one rises with the time since the proxy knows it, as in
// Envoy's slow start, which is linear and cut off from below.
func (m *Model) weight(s *server, t float64) float64 {
	if t >= s.known+m.SlowStart {
		return 1
	}
	return max(m.SlowStartFrom, (t-s.known)/m.SlowStart)
}

package pods

import "sync"

// lane bounds how many endpoints of a kind are read at once. The others wait their turn.
type lane struct {
	slots int

	mu      sync.Mutex
	taken   int
	waiting []*endpoint
}

// take takes a slot for an endpoint, or has it wait for one.
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

// next hands a slot on to the endpoint that has waited longest, or gives it back if there is none.
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

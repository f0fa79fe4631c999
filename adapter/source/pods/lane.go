package pods

import "sync"

// lane limits how many endpoints are read at the same time, and how many of one namespace. The others wait in order, and
// their namespaces take turns.
type lane struct {
	slots int
	share int // of them, for one namespace

	mu      sync.Mutex
	taken   int
	held    map[string]int         // slots, by namespace
	waiting map[string][]*endpoint // by namespace
	turns   []string               // the namespaces in waiting
}

// newLane returns a lane of which a quarter is always left for other namespaces.
func newLane(slots int) *lane {
	return &lane{slots: slots, share: slots - slots/4, held: map[string]int{}, waiting: map[string][]*endpoint{}}
}

// take takes a slot for an endpoint, or queues it.
func (l *lane) take(e *endpoint) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.takeLocked(e) {
		return true
	}
	namespace := e.key.pod.Namespace
	if len(l.waiting[namespace]) == 0 {
		l.turns = append(l.turns, namespace)
	}
	l.waiting[namespace] = append(l.waiting[namespace], e)
	return false
}

// takeFree takes a slot for an endpoint if there is one for it.
func (l *lane) takeFree(e *endpoint) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeLocked(e)
}

func (l *lane) takeLocked(e *endpoint) bool {
	namespace := e.key.pod.Namespace
	if l.taken == l.slots || l.held[namespace] == l.share {
		return false
	}
	l.taken++
	l.held[namespace]++
	return true
}

// release frees the slot of an endpoint, and returns the endpoint that has it from now on, nil if there is none.
func (l *lane) release(e *endpoint) *endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken--
	if l.held[e.key.pod.Namespace]--; l.held[e.key.pod.Namespace] == 0 {
		delete(l.held, e.key.pod.Namespace)
	}
	// A namespace that waits while slots are free has all of its share: few are skipped.
	for i, namespace := range l.turns {
		queue := l.waiting[namespace]
		if !l.takeLocked(queue[0]) {
			continue
		}
		l.turns = append(l.turns[:i], l.turns[i+1:]...)
		if len(queue) == 1 {
			delete(l.waiting, namespace)
		} else {
			l.waiting[namespace] = queue[1:]
			l.turns = append(l.turns, namespace)
		}
		next := queue[0]
		queue[0] = nil
		return next
	}
	return nil
}

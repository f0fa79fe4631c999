package pods

import (
	"slices"
	"sync"
)

// lane limits how many endpoints are read at the same time, and how many of one namespace. The others wait in order, and
// a slot goes to the namespace that has fewest, in turns among equals: one whose scrapes take long gets no more of the
// slots than others.
//
// It is no share.Pool: tens of thousands of endpoints may wait, none with a goroutine, and a slot is soon free without
// that a scrape is called back.
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
	next := -1
	for i, namespace := range l.turns {
		if next < 0 || l.held[namespace] < l.held[l.turns[next]] {
			next = i
		}
	}
	if next < 0 {
		return nil
	}
	namespace := l.turns[next]
	queue := l.waiting[namespace]
	first := queue[0]
	if !l.takeLocked(first) {
		return nil // it has all that one namespace may have, and so would any other that waits
	}
	l.turns = slices.Delete(l.turns, next, next+1)
	if len(queue) == 1 {
		delete(l.waiting, namespace)
		return first
	}
	queue[0] = nil
	l.waiting[namespace] = queue[1:]
	l.turns = append(l.turns, namespace)
	return first
}

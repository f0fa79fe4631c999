package pods

import (
	"slices"
	"sync"
)

// namespaceLimiter limits how many endpoints are read at the same time, and how many of one namespace.
// The others wait in order. A free slot goes to the namespace that holds the fewest, in rotation among
// equals, so a namespace with slow scrapes gets no more slots than others.
//
// share.Pool does not fit here: tens of thousands of endpoints may wait, none with a goroutine, and
// slots become free so soon that no scrape needs to be cancelled.
type namespaceLimiter struct {
	slots int // slots of all namespaces
	share int // slots of one namespace

	mu       sync.Mutex
	taken    int
	held     map[string]int         // slots, by namespace
	waiting  map[string][]*endpoint // by namespace
	rotation []string               // the namespaces in waiting, in their order
}

// newNamespaceLimiter returns a limiter that leaves at least a quarter of its slots to other
// namespaces.
func newNamespaceLimiter(slots int) *namespaceLimiter {
	return &namespaceLimiter{slots: slots, share: slots - slots/4, held: map[string]int{},
		waiting: map[string][]*endpoint{}}
}

// acquire takes a slot for an endpoint and returns true, or queues the endpoint and returns false.
func (l *namespaceLimiter) acquire(e *endpoint) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.acquireLocked(e) {
		return true
	}
	namespace := e.key.pod.Namespace
	if len(l.waiting[namespace]) == 0 {
		l.rotation = append(l.rotation, namespace)
	}
	l.waiting[namespace] = append(l.waiting[namespace], e)
	return false
}

// tryAcquire takes a slot for an endpoint if one is free, and never queues it.
func (l *namespaceLimiter) tryAcquire(e *endpoint) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acquireLocked(e)
}

// acquireLocked is tryAcquire with mu held.
func (l *namespaceLimiter) acquireLocked(e *endpoint) bool {
	namespace := e.key.pod.Namespace
	if l.taken == l.slots || l.held[namespace] == l.share {
		return false
	}
	l.taken++
	l.held[namespace]++
	return true
}

// release frees the slot of an endpoint. If another one waits, it passes the slot on and returns that
// endpoint, otherwise nil.
func (l *namespaceLimiter) release(e *endpoint) *endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken--
	if l.held[e.key.pod.Namespace]--; l.held[e.key.pod.Namespace] == 0 {
		delete(l.held, e.key.pod.Namespace)
	}
	next := -1
	for i, namespace := range l.rotation {
		if next < 0 || l.held[namespace] < l.held[l.rotation[next]] {
			next = i
		}
	}
	if next < 0 {
		return nil
	}
	namespace := l.rotation[next]
	queue := l.waiting[namespace]
	first := queue[0]
	if !l.acquireLocked(first) {
		return nil // the namespace with the fewest slots holds its whole share, so no other can take one either
	}
	l.rotation = slices.Delete(l.rotation, next, next+1)
	if len(queue) == 1 {
		delete(l.waiting, namespace)
		return first
	}
	queue[0] = nil
	l.waiting[namespace] = queue[1:]
	l.rotation = append(l.rotation, namespace)
	return first
}

package ec2

import (
	"sync"
	"time"
)

// visibleWithin is how long EC2 may deny an instance that it has just launched.
const visibleWithin = 5 * time.Minute

// recentLaunches has the ids of instances that EC2 may not return yet. Its methods may be called from any goroutine.
type recentLaunches struct {
	now func() time.Time

	mu sync.Mutex
	at map[string]time.Time
}

func newRecentLaunches(now func() time.Time) *recentLaunches {
	return &recentLaunches{now: now, at: map[string]time.Time{}}
}

// add records a launch and drops those that EC2 must know by now.
func (r *recentLaunches) add(id string) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for old, at := range r.at {
		if now.Sub(at) > visibleWithin {
			delete(r.at, old)
		}
	}
	r.at[id] = now
}

// mayAppear reports whether an instance that EC2 does not return may have been launched just now.
func (r *recentLaunches) mayAppear(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.at[id]
	return ok && r.now().Sub(at) <= visibleWithin
}

package predictedmetric

import (
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/internal/share"
)

const (
	// readRate and readBurst bound how often the scales of a namespace are read, so that its
	// PredictedMetrics and the changes of its targets leave requests to the API server for others.
	readRate, readBurst = 20, 300
	// pollRate bounds how often the scales of all targets that are not watched are read, in equal
	// parts for each namespace.
	pollRate = 20
)

// reads shares the reads of scales.
type reads struct {
	rate *share.Rate // of namespaces

	mu       sync.Mutex
	nextTurn map[types.NamespacedName]time.Time
	polled   map[string]map[types.NamespacedName]struct{} // by namespace
}

func newReads() *reads {
	return &reads{
		rate: share.NewRate(readRate, readBurst), nextTurn: map[types.NamespacedName]time.Time{},
		polled: map[string]map[types.NamespacedName]struct{}{},
	}
}

// take returns how long a PredictedMetric has to wait for its turn to have the scale of its target read; 0: it is now.
func (r *reads) take(key types.NamespacedName, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	turn, waits := r.nextTurn[key]
	if !waits {
		turn = now.Add(r.rate.Reserve(key.Namespace, now))
	}
	if turn.After(now) {
		r.nextTurn[key] = turn
		return turn.Sub(now)
	}
	delete(r.nextTurn, key)
	return 0
}

// resyncAfter returns when a PredictedMetric is reconciled again without an event: each at its own
// moment of every resync, however many were reconciled together at a start.
func resyncAfter(key types.NamespacedName, now time.Time) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key.String()))
	moment := time.Duration(hash.Sum32()) * time.Microsecond % resync
	wait := now.Truncate(resync).Add(moment).Sub(now)
	for wait < resync/10 {
		wait += resync
	}
	return wait
}

// next returns when to read the scale of a PredictedMetric's target again, by whether it is watched.
func (r *reads) next(key types.NamespacedName, watched bool, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if watched {
		r.stopPolling(key)
		return resyncAfter(key, now)
	}
	if r.polled[key.Namespace] == nil {
		r.polled[key.Namespace] = map[types.NamespacedName]struct{}{}
	}
	r.polled[key.Namespace][key] = struct{}{}
	return max(poll, time.Duration(len(r.polled[key.Namespace])*len(r.polled))*time.Second/pollRate)
}

func (r *reads) stopPolling(key types.NamespacedName) {
	delete(r.polled[key.Namespace], key)
	if len(r.polled[key.Namespace]) == 0 {
		delete(r.polled, key.Namespace)
	}
}

func (r *reads) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.nextTurn, key)
	r.stopPolling(key)
}

package extender

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// past is what is remembered of a pod that every node was too full for.
type past struct {
	since     time.Time // when it was first said so of all nodes; zero: not yet
	elsewhere int       // how often it was said of some
}

// maxWaiting is how many pods are remembered that every node was too full for. Of more than that the scheduler could not try
// each within minutes.
const maxWaiting = 20_000

// waitingLife is for how long they are, from when they were last asked about. The scheduler tries pods again after five
// minutes at the latest.
const waitingLife = 15 * time.Minute

// waiting remembers pods that every node was too full for.
type waiting struct {
	mu     sync.Mutex
	pods   map[types.UID]*wait
	pruned time.Time
}

type wait struct {
	past
	last time.Time
}

func newWaiting() *waiting { return &waiting{pods: map[types.UID]*wait{}} }

// of returns the past of a pod.
func (w *waiting) of(pod types.UID) past {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pods[pod]; p != nil {
		return p.past
	}
	return past{}
}

// note remembers what became of a pod. since is when it began to wait, if it does.
func (w *waiting) note(pod types.UID, r room, since, now time.Time) {
	if r == enough || pod == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prune(now)
	p := w.pods[pod]
	if p == nil {
		if r == passed || len(w.pods) >= maxWaiting {
			return // one too many waits by what its condition says
		}
		p = &wait{}
		w.pods[pod] = p
	}
	p.last = now
	switch {
	case r == elsewhere:
		p.elsewhere++
	case r == waits && p.since.IsZero():
		p.since = since
	}
}

// prune forgets pods that were not asked about for long, once a minute.
func (w *waiting) prune(now time.Time) {
	if now.Sub(w.pruned) < time.Minute {
		return
	}
	w.pruned = now
	for uid, p := range w.pods {
		if now.Sub(p.last) >= waitingLife {
			delete(w.pods, uid)
		}
	}
}

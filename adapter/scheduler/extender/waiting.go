package extender

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxWaiting caps the number of waiting pods that are remembered. The scheduler could not retry more within minutes.
const maxWaiting = 20_000

// waitingLife is the time that a pod is remembered after its last request. The scheduler retries after five minutes
// at the latest.
const waitingLife = 15 * time.Minute

// waitingPods remembers the pods that fit no node.
type waitingPods struct {
	mu     sync.Mutex
	pods   map[types.UID]*waitingPod
	pruned time.Time
}

type waitingPod struct {
	waitHistory
	last time.Time
}

func newWaitingPods() *waitingPods { return &waitingPods{pods: map[types.UID]*waitingPod{}} }

// of returns the history of a pod.
func (w *waitingPods) of(pod types.UID) waitHistory {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pods[pod]; p != nil {
		return p.waitHistory
	}
	return waitHistory{}
}

// note records the outcome for a pod. since is when it began to wait, if it does.
func (w *waitingPods) note(pod types.UID, r outcome, since, now time.Time) {
	if r == enough || pod == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prune(now)
	p := w.pods[pod]
	if p == nil {
		if r == passed || len(w.pods) >= maxWaiting {
			return // further pods wait by their condition
		}
		p = &waitingPod{}
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

// prune drops pods without recent requests, once a minute.
func (w *waitingPods) prune(now time.Time) {
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

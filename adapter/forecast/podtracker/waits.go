package podtracker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/internal/objectcache"
)

const (
	// minWait is how long a pod that has waited for a node has waited at least. Others are scheduled
	// within a second or two of their creation, and are not kept.
	minWait = 5 * time.Second
	// waitsKept bounds the memory that they take, some 100 bytes each.
	waitsKept = 512
)

// Wait is the way of one pod from its creation to a node, which took more than a moment (whole
// seconds both, as pods record them).
type Wait struct {
	Node               string
	Created, Scheduled time.Time
}

// waitOf returns the wait of a pod, nil if it has no node yet, or did not wait for it.
func waitOf(p *corev1.Pod) *Wait {
	if p.Spec.NodeName == "" {
		return nil
	}
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionTrue {
			continue
		}
		if c.LastTransitionTime.Sub(p.CreationTimestamp.Time) < minWait {
			return nil
		}
		return &Wait{Node: objectcache.Intern(p.Spec.NodeName), Created: p.CreationTimestamp.Time,
			Scheduled: c.LastTransitionTime.Time}
	}
	return nil
}

// waits holds the newest waits of all pods, in order of time. Those of deleted pods stay: the nodes
// took as long as they took.
type waits struct {
	mu     sync.Mutex
	sorted []podWait
}

type podWait struct {
	Wait
	uid types.UID
}

func (a podWait) compare(b podWait) int {
	return cmp.Or(a.Scheduled.Compare(b.Scheduled), cmp.Compare(a.uid, b.uid))
}

func (w *waits) add(uid types.UID, x *Wait) {
	if x == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := podWait{Wait: *x, uid: uid}
	at, known := slices.BinarySearchFunc(w.sorted, p, podWait.compare)
	if known || (at == 0 && len(w.sorted) == waitsKept) {
		return
	}
	w.sorted = slices.Insert(w.sorted, at, p)
	if extra := len(w.sorted) - waitsKept; extra > 0 {
		w.sorted = slices.Delete(w.sorted, 0, extra)
	}
}

// Waits returns how long pods have waited for their nodes, the newest last. Only pods that have
// waited for more than a moment are in it, and no more than some hundreds.
func (t *Tracker) Waits() []Wait {
	t.waits.mu.Lock()
	defer t.waits.mu.Unlock()
	out := make([]Wait, len(t.waits.sorted))
	for i, x := range t.waits.sorted {
		out[i] = x.Wait
	}
	return out
}

package podtracker

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// IndexedPods is the pods that a PodIndex indexes.
type IndexedPods interface {
	Instances(since time.Time) []Instance
	Watch(changed func()) (stop func())
}

// PodIndex finds instances by the names of their pods, for sources that know only these. It is safe
// for concurrent use and never waits for the TargetPods.
type PodIndex struct {
	pods IndexedPods
	stop func()

	mu   sync.Mutex // held while a list is made, so that the newest one stays
	list atomic.Pointer[instancesByPod]
}

// instancesByPod are instances, and where they are in the order of the names of their pods, of one
// pod the newest first. The instances are those that the pods have listed, not copies: there may be
// a hundred thousand.
type instancesByPod struct {
	all   []Instance
	order []int32
}

var _ IndexedPods = (*TargetPods)(nil)

// NewPodIndex returns an index that follows the pods until it is closed.
func NewPodIndex(pods IndexedPods) *PodIndex {
	r := &PodIndex{pods: pods}
	r.stop = pods.Watch(r.update)
	r.update()
	return r
}

// Close stops following the pods.
func (r *PodIndex) Close() { r.stop() }

// Find returns the ID of the instance that the pod of a name was at a time (ms): of the newest that
// had started by then, whether it has ended or not, so that a reading taken at the very end is
// still of the instance; else of the first. It returns false for an unknown pod.
func (r *PodIndex) Find(pod string, at int64) (id string, ok bool) {
	l := r.list.Load()
	i, _ := slices.BinarySearchFunc(l.order, pod,
		func(at int32, pod string) int { return strings.Compare(l.all[at].Pod.Name, pod) })
	for ; i < len(l.order) && l.all[l.order[i]].Pod.Name == pod; i++ {
		x := &l.all[l.order[i]]
		id, ok = x.ID, true
		if x.Start.UnixMilli() <= at {
			break
		}
	}
	return id, ok
}

// Active returns the active instances, in order of the names of their pods.
func (r *PodIndex) Active() []Instance {
	l := r.list.Load()
	var out []Instance
	for _, at := range l.order {
		if l.all[at].End.IsZero() {
			out = append(out, l.all[at])
		}
	}
	return out
}

// AnyActive reports whether there is an active instance.
func (r *PodIndex) AnyActive() bool {
	return slices.ContainsFunc(r.list.Load().all, func(x Instance) bool { return x.End.IsZero() })
}

func (r *PodIndex) update() {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := instancesByPod{all: r.pods.Instances(time.Time{})}
	l.order = make([]int32, len(l.all))
	for i := range l.order {
		l.order[i] = int32(i) // #nosec G115 -- a target has fewer pods than that
	}
	slices.SortFunc(l.order, func(a, b int32) int {
		x, y := &l.all[a], &l.all[b]
		return cmp.Or(strings.Compare(x.Pod.Name, y.Pod.Name), y.Start.Compare(x.Start))
	})
	r.list.Store(&l)
}

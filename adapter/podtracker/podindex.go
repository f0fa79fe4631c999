package podtracker

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// IndexedPods is the pods that a PodIndex indexes.
type IndexedPods interface {
	Instances(since time.Time) []Instance
	Watch(Observer) (stop func())
}

// PodIndex finds instances by the names of their pods, for sources that know only these. It is safe for concurrent use and
// never waits for the TargetPods.
type PodIndex struct {
	pods IndexedPods
	stop func()

	mu     sync.Mutex // held while a list is made, so that the newest one stays
	byName atomic.Pointer[map[string][]Instance]
}

var _ IndexedPods = (*TargetPods)(nil)

// NewPodIndex returns an index that follows the pods until it is closed.
func NewPodIndex(pods IndexedPods) *PodIndex {
	r := &PodIndex{pods: pods}
	r.stop = pods.Watch(r)
	r.Changed()
	return r
}

// Close stops following the pods.
func (r *PodIndex) Close() { r.stop() }

// Find returns the ID of the instance that the pod of a name was at a time (ms): of the newest that had started by
// then, whether it has ended or not, so that a reading taken at the very end is still of the instance; else of the first.
// It returns false for an unknown pod.
func (r *PodIndex) Find(pod string, at int64) (id string, ok bool) {
	of := (*r.byName.Load())[pod]
	for i := range of {
		if i == len(of)-1 || of[i].Start.UnixMilli() <= at {
			return of[i].ID, true
		}
	}
	return "", false
}

// Active returns the active instances, in order of the names of their pods.
func (r *PodIndex) Active() []Instance {
	var out []Instance
	for _, of := range *r.byName.Load() {
		for i := range of {
			if of[i].End.IsZero() {
				out = append(out, of[i])
			}
		}
	}
	slices.SortFunc(out, func(a, b Instance) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
	return out
}

// Started implements Observer.
func (r *PodIndex) Started(Instance) { r.Changed() }

// Ended implements Observer.
func (r *PodIndex) Ended(Instance) { r.Changed() }

// Changed implements Observer.
func (r *PodIndex) Changed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	byName := map[string][]Instance{}
	for _, x := range r.pods.Instances(time.Time{}) {
		byName[x.Pod.Name] = append(byName[x.Pod.Name], x)
	}
	for _, of := range byName {
		slices.SortFunc(of, func(a, b Instance) int { return b.Start.Compare(a.Start) }) // the newest first
	}
	r.byName.Store(&byName)
}

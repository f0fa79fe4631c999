package instances

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// RosterFleet is what a Roster is kept of.
type RosterFleet interface {
	Instances(since time.Time) []Instance
	Watch(Observer) (stop func())
}

// Roster finds instances of a fleet by the names of their pods, for sources that know pods by no more than that.
// It is safe for concurrent use and never waits for the fleet.
type Roster struct {
	fleet RosterFleet
	stop  func()

	mu     sync.Mutex // held while a list is made, so that the newest one stays
	byName atomic.Pointer[map[string][]Instance]
}

var _ RosterFleet = (*Fleet)(nil)

// NewRoster returns a roster that follows a fleet until it is closed.
func NewRoster(fleet RosterFleet) *Roster {
	r := &Roster{fleet: fleet}
	r.stop = fleet.Watch(r)
	r.Changed()
	return r
}

// Close ends the following.
func (r *Roster) Close() { r.stop() }

// Find returns the ID of the instance that the pod of a name was at a time (ms): of the newest that had started by
// then, whether it has ended or not, so that a reading taken at the very end is still of the instance; else of the first.
// It returns false for a pod that is not of the fleet.
func (r *Roster) Find(pod string, at int64) (id string, ok bool) {
	of := (*r.byName.Load())[pod]
	for i := range of {
		if i == len(of)-1 || of[i].Start.UnixMilli() <= at {
			return of[i].ID, true
		}
	}
	return "", false
}

// Active returns the active instances, in order of the names of their pods.
func (r *Roster) Active() []Instance {
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
func (r *Roster) Started(Instance) { r.Changed() }

// Ended implements Observer.
func (r *Roster) Ended(Instance) { r.Changed() }

// Changed implements Observer.
func (r *Roster) Changed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	byName := map[string][]Instance{}
	for _, x := range r.fleet.Instances(time.Time{}) {
		byName[x.Pod.Name] = append(byName[x.Pod.Name], x)
	}
	for _, of := range byName {
		slices.SortFunc(of, func(a, b Instance) int { return b.Start.Compare(a.Start) }) // the newest first
	}
	r.byName.Store(&byName)
}

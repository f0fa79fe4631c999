package resource

import (
	"fmt"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/instances"
	"github.com/foresail/foresail/adapter/source"
)

// grace is for how many intervals after its start a pod may be without metrics: servers know it only once they have
// read it twice.
const grace = 3

// subscription is what has been Set for one key.
type subscription struct {
	source *Source
	config Config
	fleet  Fleet
	roster *instances.Roster
	sink   source.Sink
	poller *poller

	mu    sync.Mutex
	ended bool
	taken map[string]int64 // time (ms) of the last sample, by active instance
}

func newSubscription(s *Source, c Config, fleet Fleet, sink source.Sink) *subscription {
	return &subscription{source: s, config: c, fleet: fleet, roster: instances.NewRoster(fleet), sink: sink}
}

// end ends a subscription. Its sink is not called any more when it returns.
func (u *subscription) end() {
	u.roster.Close()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
}

// take tells the sink what is new in a list.
func (u *subscription) take(l *listing) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return
	}
	u.sink.Trouble(l.err)
	if l.err != nil {
		return
	}
	taken := make(map[string]int64, len(u.taken))
	for _, i := range u.roster.Active() {
		if at, ok := u.takePod(l, i); ok {
			taken[i.ID] = at
		}
	}
	u.taken = taken
}

// takePod tells the sink what a list has on one active instance, and returns the time of the sample.
func (u *subscription) takePod(l *listing, i instances.Instance) (at int64, ok bool) {
	metrics := l.pods[i.Pod.Name]
	if metrics == nil {
		if age := l.at.Sub(i.Start); age > grace*u.config.Interval {
			u.sink.Fail(i.ID, fmt.Errorf("metrics.k8s.io has no metrics of the pod, which has been ready for %s", age.Truncate(time.Second)))
		}
		return 0, false
	}
	sample, err := u.config.sample(metrics)
	if err != nil {
		u.sink.Fail(i.ID, err)
		return 0, false
	}
	if last, known := u.taken[i.ID]; known && last == sample.T {
		return sample.T, true
	}
	// Of a pod that has just become ready again, the last reading may be of the instance before.
	if id, found := u.roster.Find(i.Pod.Name, sample.T); found {
		u.sink.Append(id, sample)
		u.source.telemetry.samples.Inc()
	}
	return sample.T, true
}

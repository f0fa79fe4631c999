package resource

import (
	"fmt"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
)

// grace is for how many intervals after its start a pod may lack metrics: servers need two readings of it.
const grace = 3

// subscription is one Set key.
type subscription struct {
	source   *Source
	config   Config
	fleet    Fleet
	podIndex *podtracker.PodIndex
	sink     source.Sink
	poller   *poller

	mu    sync.Mutex
	ended bool
	taken map[string]int64 // time (ms) of the last sample, by active instance
}

func newSubscription(s *Source, c Config, fleet Fleet, sink source.Sink) *subscription {
	return &subscription{source: s, config: c, fleet: fleet, podIndex: podtracker.NewPodIndex(fleet), sink: sink}
}

// end ends a subscription. Its sink is not called any more when it returns.
func (u *subscription) end() {
	u.podIndex.Close()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
}

// take gives the sink the new samples of a list.
func (u *subscription) take(l *listing) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return
	}
	u.sink.SourceFailed(l.err)
	if l.err != nil {
		return
	}
	taken := make(map[string]int64, len(u.taken))
	for _, i := range u.podIndex.Active() {
		if at, ok := u.takePod(l, i); ok {
			taken[i.ID] = at
		}
	}
	u.taken = taken
}

// takePod gives the sink the sample of one active instance, and returns its time.
func (u *subscription) takePod(l *listing, i podtracker.Instance) (at int64, ok bool) {
	metrics := l.pods[i.Pod.Name]
	if metrics == nil {
		if age := l.at.Sub(i.Start); age > grace*u.config.Interval {
			u.sink.Fail(i.ID, fmt.Errorf("metrics.k8s.io has no metrics of the pod, which has been ready for %s",
				age.Truncate(time.Second)))
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
	// If a pod has just become ready again, the last reading may be of its previous instance.
	if id, found := u.podIndex.Find(i.Pod.Name, sample.T); found {
		u.sink.Append(id, sample)
	}
	return sample.T, true
}

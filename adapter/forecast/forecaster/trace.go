package forecaster

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

const (
	// watchedFor is the time for which forecasts are traced after a trace was requested.
	watchedFor = 15 * time.Second
	// maxWatched is how many feeds are traced at a time, and maxTicks how many ticks a trace has: the newest.
	maxWatched = 16
	maxTicks   = 1000
)

// feedTrace is the trace of the newest forecast of a feed. It is recorded only while one is requested.
type feedTrace struct {
	until atomic.Int64 // ms
	trace atomic.Pointer[snapshot.Trace]
}

// tracer limits the number of feeds that are traced at a time.
type tracer struct {
	mu      sync.Mutex
	watched []*Feed
}

// extend has a feed traced for a while, unless there are enough others.
func (t *tracer) extend(feed *Feed, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = slices.DeleteFunc(t.watched,
		func(other *Feed) bool { return other.watch.until.Load() <= now.UnixMilli() })
	if !slices.Contains(t.watched, feed) {
		if len(t.watched) == maxWatched {
			return
		}
		t.watched = append(t.watched, feed)
	}
	feed.watch.until.Store(now.Add(watchedFor).UnixMilli())
}

// requested reports whether a trace is requested at a time (ms).
func (t *feedTrace) requested(now int64) bool { return now < t.until.Load() }

// traceOf describes a forecast by the samples that were read: where others were put in for them,
// these are not shown, and their values count as imputed.
func traceOf(
	forecast pipeline.Forecast, stages pipeline.Trace, in *pipeline.Input,
	members []podtracker.Instance, series map[string]*samples.Packed,
) *snapshot.Trace {
	t := &snapshot.Trace{At: time.UnixMilli(in.Now), Forecast: forecast, Stages: stages}
	for i := range members {
		if end := members[i].End; end.IsZero() || end.UnixMilli() > stages.First {
			t.AllPods++
		}
	}
	for i := range stages.Instances {
		id := stages.Instances[i].ID
		if in.Total != nil {
			t.Pods = append(t.Pods, snapshot.TracedPod{Samples: slices.Clone(in.Total)})
			continue
		}
		k := slices.IndexFunc(members, func(m podtracker.Instance) bool { return m.ID == id })
		pod := snapshot.TracedPod{Name: members[k].Pod.Name}
		if read := series[id]; read != nil {
			pod.Samples = read.AppendTo(nil)
		}
		narrow(&stages, i, pod.Samples)
		pod.Samples = slices.DeleteFunc(pod.Samples, func(s pipeline.Sample) bool { return s.T < stages.First })
		t.Pods = append(t.Pods, pod)
	}
	return t
}

// narrow has the values of an instance count as aligned only between two of the samples, which are in order of time.
func narrow(stages *pipeline.Trace, instance int, samples []pipeline.Sample) {
	x := &stages.Instances[instance]
	if len(samples) < 2 {
		x.AlignedFrom, x.AlignedTo = 0, 0
		return
	}
	tick := stages.Interval.Milliseconds()
	first, last := samples[0].T-stages.First, samples[len(samples)-1].T-stages.First
	x.AlignedFrom = max(x.AlignedFrom, int((first+tick-1)/tick))
	x.AlignedTo = max(x.AlignedFrom, min(x.AlignedTo, int(last/tick)+1))
}

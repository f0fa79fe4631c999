package forecaster

import (
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

const (
	// watchedFor is for how long forecasts are traced after somebody has asked for a trace.
	watchedFor = 15 * time.Second
	// maxWatched is how many feeds are traced at a time, and maxTicks how many ticks a trace has: the newest.
	maxWatched = 16
	maxTicks   = 1000
)

// watch is the trace of a feed, which is kept only while somebody looks at it.
type watch struct {
	until atomic.Int64 // ms
	trace atomic.Pointer[snapshot.Trace]
}

// Trace returns how the newest forecast of a PredictedMetric came about, and false if there is no such PredictedMetric. It is nil while
// there is no forecast, and at first: forecasts are traced from the first call on, for as long as calls go on, those of maxWatched
// PredictedMetrics at most.
func (f *Forecaster) Trace(key types.NamespacedName) (*snapshot.Trace, bool) {
	feed := f.feed(key)
	if feed == nil {
		return nil, false
	}
	f.keepTracing(feed)
	return feed.watch.trace.Load(), true
}

// keepTracing has a feed traced for a while, unless there are enough others.
func (f *Forecaster) keepTracing(feed *Feed) {
	f.watchedMu.Lock()
	defer f.watchedMu.Unlock()
	now := f.now()
	f.watched = slices.DeleteFunc(f.watched, func(other *Feed) bool { return other.watch.until.Load() <= now.UnixMilli() })
	if !slices.Contains(f.watched, feed) {
		if len(f.watched) == maxWatched {
			return
		}
		f.watched = append(f.watched, feed)
	}
	feed.watch.until.Store(now.Add(watchedFor).UnixMilli())
}

// runPipeline makes a forecast of what is in the workspace, and traces it while it is watched.
func (f *Feed) runPipeline(in pipeline.Input, members []podtracker.Instance, w *workspace) (pipeline.Forecast, error) {
	if in.Now >= f.watch.until.Load() {
		f.watch.trace.Store(nil)
		return f.using.pipeline.RunIn(&w.memory, in)
	}
	forecast, stages, err := f.using.pipeline.Trace(&w.memory, in, snapshot.MaxTracedPods)
	if err == nil {
		f.watch.trace.Store(f.traceOf(forecast, stages.Newest(maxTicks), &in, members))
	}
	return forecast, err
}

// traceOf describes a forecast by the samples that were read: where others were put in for them, these are not shown, and their values
// count as imputed.
func (f *Feed) traceOf(forecast pipeline.Forecast, stages pipeline.Trace, in *pipeline.Input, members []podtracker.Instance) *snapshot.Trace {
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
		if read := f.series[id]; read != nil {
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

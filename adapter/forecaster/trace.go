package forecaster

import (
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/podtracker"
	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// watchedFor is for how long forecasts are traced after somebody has asked for a trace.
const watchedFor = 15 * time.Second

// watch is the trace of a feed, which is kept only while somebody looks at it.
type watch struct {
	until atomic.Int64 // ms
	trace atomic.Pointer[snapshot.Trace]
}

// Trace returns how the newest forecast of a PredictedMetric came about, and false if there is no such PredictedMetric. It is nil while
// there is no forecast, and at first: forecasts are traced from the first call on, for as long as calls go on.
func (f *Forecaster) Trace(key types.NamespacedName) (*snapshot.Trace, bool) {
	feed := f.feed(key)
	if feed == nil {
		return nil, false
	}
	feed.watch.until.Store(f.now().Add(watchedFor).UnixMilli())
	return feed.watch.trace.Load(), true
}

// runPipeline makes a forecast of what is in the workspace, and traces it while it is watched.
func (f *Feed) runPipeline(in pipeline.Input, members []podtracker.Instance, w *workspace) (pipeline.Forecast, error) {
	if in.Now >= f.watch.until.Load() {
		f.watch.trace.Store(nil)
		return f.using.pipeline.RunIn(&w.memory, in)
	}
	forecast, stages, err := f.using.pipeline.Trace(&w.memory, in, snapshot.MaxTracedPods)
	if err == nil {
		f.watch.trace.Store(traceOf(forecast, stages, &in, members))
	}
	return forecast, err
}

func traceOf(forecast pipeline.Forecast, stages pipeline.Trace, in *pipeline.Input, members []podtracker.Instance) *snapshot.Trace {
	t := &snapshot.Trace{At: time.UnixMilli(in.Now), Forecast: forecast, Stages: stages, AllPods: len(members)}
	for i := range stages.Instances {
		id := stages.Instances[i].ID
		if in.Total != nil {
			t.Pods = append(t.Pods, snapshot.TracedPod{Samples: slices.Clone(in.Total)})
			continue
		}
		k := slices.IndexFunc(members, func(m podtracker.Instance) bool { return m.ID == id })
		t.Pods = append(t.Pods, snapshot.TracedPod{Name: members[k].Pod.Name, Samples: slices.Clone(in.Instances[k].Samples)})
	}
	return t
}

package snapshot

import (
	"time"

	"github.com/foresail/foresail/pipeline"
)

// Trace is how a forecast came about, from the samples of each pod on. It never changes after publication.
type Trace struct {
	At       time.Time // when the forecast was made
	Forecast pipeline.Forecast
	Stages   pipeline.Trace

	Pods    []TracedPod // in the order of Stages.Instances
	AllPods int         // all pods of the window, of which Pods may be a part
}

// TracedPod is a pod or, of a load that is measured as a whole, the target: then there is no other and it has no name.
type TracedPod struct {
	Name    string
	Samples []pipeline.Sample // of the window, in units of the metric
}

// MaxTracedPods is how many pods a trace has.
const MaxTracedPods = 12

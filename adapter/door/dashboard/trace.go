package dashboard

import (
	"strconv"
	"time"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// Trace is how the newest forecast of a PredictedMetric came about. Forecast is null while there is
// none, or it has not been traced yet: forecasts are traced from the first request on, while
// requests go on.
type Trace struct {
	Forecast *TracedForecast `json:"forecast"`
}

// TracedForecast has a value of each column for each tick. Times are seconds since 1970.
type TracedForecast struct {
	At       moment `json:"at"`             // when it was made
	Tick     moment `json:"tick"`           // the newest tick
	First    moment `json:"first"`          // the first one
	Interval Number `json:"stepSeconds"`    // between two
	Horizon  Number `json:"horizonSeconds"` // from At on

	Pods    []TracedPod `json:"pods"`
	AllPods int         `json:"allPods"` // of the window, of which Pods may be a part

	Sum     []Number `json:"sum"`     // of all pods in full
	Load    []Number `json:"load"`    // what is predicted from
	Clipped []bool   `json:"clipped"` // the load was at least that

	Level   Number `json:"level"`
	Trend   Number `json:"trendPerSecond"`
	Total   Number `json:"total"`    // the load at the horizon
	Planned Number `json:"planned"`  // with the margin
	Holds   Number `json:"capacity"` // what the replicas of the decision hold at the threshold
	Desired Count  `json:"desired"`
	Dropped int    `json:"droppedSamples"` // that were no numbers, out of range or from the future
}

// TracedPod is a pod, with values in units of the metric. Without a name it is the target as a whole.
type TracedPod struct {
	Name      string   `json:"name"`
	SampledAt []moment `json:"sampledAt"`
	Samples   []Number `json:"samples"`
	Values    []Number `json:"values"` // by tick, null where the pod was not active
	// the values from this tick up to, and without, alignedTo are between two samples
	AlignedFrom int `json:"alignedFrom"`
	AlignedTo   int `json:"alignedTo"` // the others are imputed
}

// moment is a time in ms since 1970. JSON has it in seconds.
type moment int64

// MarshalJSON writes three decimals.
func (m moment) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(m)/float64(time.Second/time.Millisecond), 'f', 3, 64), nil
}

func traceOf(t *snapshot.Trace) Trace {
	if t == nil {
		return Trace{}
	}
	f, s := &t.Forecast, &t.Stages
	out := &TracedForecast{
		At: moment(t.At.UnixMilli()), Tick: moment(f.Tick), First: moment(s.First),
		Interval: Number(s.Interval.Seconds()),
		Horizon:  Number(f.Horizon.Seconds()), Pods: []TracedPod{}, AllPods: t.AllPods,
		Sum: columnOf(s.Sum), Load: columnOf(s.Load), Clipped: s.Clipped,
		Level: Number(f.Level), Trend: Number(f.Trend / s.Interval.Seconds()), Total: Number(f.Total),
		Planned: Number(f.PlannedLoad),
		Holds:   Number(f.Holds), Desired: Count(whole32(f.Decision.Desired)), Dropped: f.Dropped,
	}
	for i := range t.Pods {
		out.Pods = append(out.Pods, tracedPod(&t.Pods[i], &s.Instances[i]))
	}
	return Trace{Forecast: out}
}

func tracedPod(p *snapshot.TracedPod, s *pipeline.TracedInstance) TracedPod {
	out := TracedPod{Name: p.Name, SampledAt: []moment{}, Samples: []Number{}, Values: columnOf(s.Values),
		AlignedFrom: s.AlignedFrom, AlignedTo: s.AlignedTo}
	for _, sample := range p.Samples {
		out.SampledAt = append(out.SampledAt, moment(sample.T))
		out.Samples = append(out.Samples, Number(sample.V))
	}
	return out
}

func columnOf(values []float64) []Number {
	out := make([]Number, len(values))
	for i, v := range values {
		out[i] = Number(v)
	}
	return out
}

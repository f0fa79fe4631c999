package pipeline

import (
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// Trace is the output of the first three stages (paper, sections 4 to 6), tick by tick. Values, Sum, Load and
// Clipped have one entry for each tick, beginning at First.
type Trace struct {
	First    int64 // ms
	Interval time.Duration

	Instances []TracedInstance // sorted by ID; at most as many as were requested
	Sum       []float64        // of all instances in full, in units of the model's aggregate
	Load      []float64        // the load that is extrapolated: after redistribution, with demand added
	Clipped   []bool           // with Adaptive: Load is a lower bound, because instances read the maximum of the metric
}

// TracedInstance is one instance, in units of the metric. Values in [AlignedFrom, AlignedTo) lie between two
// samples. Other values are imputed, or NaN where the instance is not active.
type TracedInstance struct {
	ID                     string
	Values                 []float64
	AlignedFrom, AlignedTo int
}

// Trace is RunIn that also returns how the forecast was computed, with the values of at most maxInstances
// instances.
func (p *Pipeline) Trace(m *Memory, in Input, maxInstances int) (Forecast, Trace, error) {
	var out Trace
	m.traced, m.maxTraced = &out, maxInstances
	defer func() { m.traced = nil }()
	f, err := p.RunIn(m, in)
	if err != nil {
		return f, Trace{}, err
	}
	return f, out, nil
}

// Newest returns the newest n ticks of a trace. The copy shares no memory with t if it omits any tick.
func (t Trace) Newest(n int) Trace {
	cut := len(t.Load) - n
	if cut <= 0 {
		return t
	}
	t.First += int64(cut) * t.Interval.Milliseconds()
	t.Sum, t.Load, t.Clipped = slices.Clone(t.Sum[cut:]), slices.Clone(t.Load[cut:]), slices.Clone(t.Clipped[cut:])
	t.Instances = slices.Clone(t.Instances)
	for i := range t.Instances {
		x := &t.Instances[i]
		x.Values = slices.Clone(x.Values[cut:])
		x.AlignedFrom, x.AlignedTo = max(0, x.AlignedFrom-cut), max(0, x.AlignedTo-cut)
	}
	return t
}

// recordTrace copies the output of the stages into the requested trace, if any.
func (p *Pipeline) recordTrace(loads []series.Load) {
	out, w := p.traced, &p.window
	if out == nil {
		return
	}
	out.First, out.Interval = w.Tick(w.First), p.params.Interval
	out.Sum = make([]float64, len(loads))
	for i := range w.Rows {
		r := &w.Rows[i]
		at := r.Active.Intersect(w.Span())
		for k := at.From; k < at.To; k++ {
			out.Sum[k-w.First] += p.params.Model.Load(r.Values[k])
		}
		if i < p.maxTraced {
			out.Instances = append(out.Instances, traceInstance(r, w.Span()))
		}
	}
	for i := range loads {
		out.Load = append(out.Load, loads[i].Effective)
		out.Clipped = append(out.Clipped, loads[i].Clipped)
	}
}

// traceInstance copies the values of an instance.
func traceInstance(r *series.Row, span series.Ticks) TracedInstance {
	aligned := r.Known.Intersect(span).Intersect(r.Active)
	if aligned.Empty() {
		aligned = series.Ticks{From: span.From, To: span.From}
	}
	values := slices.Clone(r.Values[span.From:span.To])
	for k := range values {
		if !r.Active.Contains(span.From + k) {
			values[k] = math.NaN()
		}
	}
	return TracedInstance{ID: r.ID, Values: values, AlignedFrom: aligned.From - span.From,
		AlignedTo: aligned.To - span.From}
}

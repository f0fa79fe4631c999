package pipeline

import (
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// Trace is what the first three stages made of the samples (paper, sections 4 to 6), tick by tick: Values, Sum, Load
// and Clipped have an entry for each tick from First on.
type Trace struct {
	First    int64 // ms
	Interval time.Duration

	Instances []Traced  // by ID; the first ones only, where there are more than were asked for
	Sum       []float64 // of all instances in full, in units of the model's aggregate
	Load      []float64 // what is predicted from: with what moves between instances redistributed, and with demand
	Clipped   []bool    // with Adaptive: the load was at least that, as instances read the maximum
}

// Traced is one instance, in units of the metric. At the ticks from AlignedFrom up to, and without, AlignedTo its
// values lie between two samples; others are imputed, and NaN where the instance is not active.
type Traced struct {
	ID                     string
	Values                 []float64
	AlignedFrom, AlignedTo int
}

// Trace is RunIn, and returns how the forecast came about as well, with the values of most instances at most.
func (p *Pipeline) Trace(m *Memory, in Input, most int) (Forecast, Trace, error) {
	var out Trace
	m.traced, m.tracedMost = &out, most
	defer func() { m.traced = nil }()
	f, err := p.RunIn(m, in)
	if err != nil {
		return f, Trace{}, err
	}
	return f, out, nil
}

// Newest returns the newest ticks of a trace, n at most, in memory of its own if it leaves any out.
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

// keep copies what the stages have made, if a trace was asked for.
func (p *Pipeline) keep(loads []series.Load) {
	out, w := p.traced, &p.window
	if out == nil {
		return
	}
	out.First, out.Interval = w.Tick(w.First), p.params.Interval
	out.Sum = make([]float64, len(loads))
	for i := range w.Rows {
		r := &w.Rows[i]
		at := r.Active.And(w.Span())
		for k := at.From; k < at.To; k++ {
			out.Sum[k-w.First] += p.params.Model.Load(r.Values[k])
		}
		if i < p.tracedMost {
			out.Instances = append(out.Instances, traced(r, w.Span()))
		}
	}
	for i := range loads {
		out.Load = append(out.Load, loads[i].Effective)
		out.Clipped = append(out.Clipped, loads[i].Clipped)
	}
}

// traced copies the values of an instance.
func traced(r *series.Row, span series.Ticks) Traced {
	aligned := r.Known.And(span).And(r.Active)
	if aligned.Empty() {
		aligned = series.Ticks{From: span.From, To: span.From}
	}
	values := slices.Clone(r.Values[span.From:span.To])
	for k := range values {
		if !r.Active.Contain(span.From + k) {
			values[k] = math.NaN()
		}
	}
	return Traced{ID: r.ID, Values: values, AlignedFrom: aligned.From - span.From, AlignedTo: aligned.To - span.From}
}

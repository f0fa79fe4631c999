package evaluation

import (
	"math"
	"time"

	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
)

// fleet is what a load is of: how it follows from what Foresail records, and when pods have too much of it.
type fleet struct {
	model     pipeline.Model
	threshold float64 // per pod, in units of the metric
	whole     bool    // the load is measured as a whole, and is there without pods
	idle      float64 // the load up to which no pod is needed
	max       int     // pods, outside of schedules
	calendar  *schedule.Calendar
}

// total is the load of all pods, in what the model adds up; NaN if it is not known.
func (f *fleet) total(m *Moment) float64 {
	ready := m[readyPods]
	switch {
	case math.IsNaN(ready) || ready == 0 && !f.whole:
		return math.NaN()
	case !math.IsNaN(m[load]):
		return max(0, m[load])
	case ready == 0:
		ready = max(1, m[targetReplicas]) // NaN if that is not known
	}
	return max(0, f.model.Load(m[loadPerInstance])*ready)
}

// above reports whether ready pods had more load than the threshold. Without a ready pod any is too
// much that needs one.
func (f *fleet) above(m *Moment) bool {
	if m[readyPods] == 0 {
		return f.total(m) > f.idle
	}
	if v := m[loadPerInstance]; !math.IsNaN(v) {
		return v > f.threshold*(1+rounding)
	}
	return f.total(m) > f.model.Load(f.threshold)*m[readyPods]*(1+rounding)
}

// atMaximum reports whether the target was at its maximum at a time under more load than that many
// pods hold: then its pods are not too few because of their scaler.
func (f *fleet) atMaximum(m *Moment, at time.Time) bool {
	most := f.max
	if bounds, _ := f.calendar.At(at, 0, 0); bounds != nil {
		most = bounds.Max
	}
	return m[targetReplicas] >= float64(most) && f.total(m) > f.model.Load(f.threshold)*float64(most)*(1+rounding)
}

const rounding = 1e-9

// pods are those that were paid for: as many as the target was set to, or as were ready where that
// is not known.
func pods(m *Moment) float64 {
	if n := m[targetReplicas]; !math.IsNaN(n) {
		return n
	}
	return m[readyPods]
}

// block is an hour of a record, or a part of one, in which the load is known throughout: moments
// from the first to the last, which ends it.
type block struct{ first, last int }

// blocks returns those of what is reported on, in order. Hours count back from its end, so that any
// whole number of them is of whole blocks.
func (r *Record) blocks(f *fleet) (all []block) {
	known := func(i int) bool { return !math.IsNaN(f.total(&r.Moments[i])) }
	hour := func(i int) time.Duration { return r.To.Sub(r.at(i)) / time.Hour }
	first := r.first(r.From)
	for i := first + 1; i < len(r.Moments); i++ {
		switch {
		case !known(i-1) || !known(i):
			continue
		case len(all) > 0 && all[len(all)-1].last == i-1 && hour(all[len(all)-1].first+1) == hour(i):
			all[len(all)-1].last = i
		default:
			all = append(all, block{i - 1, i})
		}
	}
	return all
}

// ran returns what happened in a block.
func (r *Record) ran(f *fleet, b block) (out score.Pods) {
	for i := b.first; i < b.last; i++ {
		m, next := &r.Moments[i], &r.Moments[i+1]
		out.Length += r.Step.Seconds()
		out.Seconds += pods(m) * r.Step.Seconds()
		if f.above(m) {
			out.AboveThresholdMinutes += r.Step.Minutes()
			if f.atMaximum(m, r.at(i)) {
				out.AtMaximumMinutes += r.Step.Minutes()
			}
		}
		before, after := m[targetReplicas], next[targetReplicas]
		if after > before {
			out.ScaleUps++
		}
		if after > before || after < before { // neither if one is not known
			out.Actions++
		}
	}
	return out
}

// mean is that of a metric over some moments that know it, and for how long they do.
func (r *Record) mean(m metric, first, end int) (mean float64, known time.Duration) {
	sum, n := 0.0, 0
	for i := first; i < end; i++ {
		if v := r.Moments[i][m]; !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n), time.Duration(n) * r.Step
}

// Gap is a time of which the load is not known.
type Gap struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Missing string    `json:"missing"` // which metric, or metrics
}

// gaps returns those of some moments, in order.
func (r *Record) gaps(f *fleet, first, end int) (all []Gap) {
	for i := first; i < end; i++ {
		m := &r.Moments[i]
		if !math.IsNaN(f.total(m)) {
			continue
		}
		missing := load.String() + " and " + loadPerInstance.String()
		switch {
		case math.IsNaN(m[readyPods]):
			missing = "all metrics of Foresail"
		case m[readyPods] == 0 && !f.whole:
			missing = "a ready pod, and so a load"
		}
		if n := len(all); n > 0 && all[n-1].Missing == missing && all[n-1].To.Equal(r.at(i)) {
			all[n-1].To = r.at(i + 1)
			continue
		}
		all = append(all, Gap{r.at(i), r.at(i + 1), missing})
	}
	return all
}

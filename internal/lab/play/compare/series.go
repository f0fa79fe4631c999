package compare

import (
	"math"
	"time"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/world/queue"
)

// maxPoints is how many points a series has at most: more cannot be distinguished in a chart.
const maxPoints = 300

// Series is how a run went, point by point. Each stands for a Step; all have as many points.
type Series struct {
	Step        time.Duration
	Rate        []float64 // requests per second that arrived
	Utilization []float64 // share of time that ready pods were busy, on average over them; NaN without one
	Ready       []float64 // pods that took requests
	Pods        []float64 // pods that were paid for
	Median, P90 []float64 // latency in ms of the requests sent then; NaN where there were none
	// share of the requests that arrived then which failed or were dropped; NaN where there were
	// none
	Lost []float64

	// Answered has, for each of Latencies, the share of all requests that arrived which were
	// answered within that time.
	Answered []float64
}

// Latencies are the times, in ms, at which distributions are looked at.
func Latencies() []int {
	const perDecade = 24
	var times []int
	for i := perDecade; i <= 4*perDecade; i++ { // 10 ms to 10 s
		ms := int(math.Round(math.Pow(10, float64(i)/perDecade)))
		if len(times) == 0 || ms > times[len(times)-1] {
			times = append(times, ms)
		}
	}
	return times
}

// watch follows a run from outside.
type watch struct {
	world       *queue.World
	from        int64
	step        int64     // seconds
	utilization []float64 // by second
}

func newWatch(w *queue.World, span lab.Span) *watch {
	seconds := int64(span.Length / time.Second)
	return &watch{world: w, from: span.Lead.Milliseconds(), step: max(1, (seconds+maxPoints-1)/maxPoints)}
}

// second is called after each second of a run.
func (w *watch) second(t int64) {
	if t <= w.from {
		return
	}
	var sum, n float64
	for _, p := range w.world.View().Pods {
		if p.IsReady(t) && p.Ready < t {
			sum += p.Busy.Mean(max(p.Ready, t-1000), t)
			n++
		}
	}
	w.utilization = append(w.utilization, sum/n)
}

// series is called after all requests have been answered.
func (w *watch) series(r *lab.Record, all queue.Requests) Series {
	s := Series{Step: time.Duration(w.step) * time.Second, Utilization: thin(w.utilization, w.step)}
	of := func(value func(lab.Second) float64) []float64 {
		all := make([]float64, len(r.Seconds))
		for i, second := range r.Seconds {
			all[i] = value(second)
		}
		return thin(all, w.step)
	}
	s.Rate = of(func(s lab.Second) float64 { return s.Rate })
	s.Ready = of(func(s lab.Second) float64 { return float64(s.Ready) })
	s.Pods = of(func(s lab.Second) float64 { return float64(s.Pods) })
	for i := range s.Pods {
		from := w.from + int64(i)*w.step*1000
		part := w.world.Between(from, from+w.step*1000)
		s.Median = append(s.Median, quantile(part, 0.5))
		s.P90 = append(s.P90, quantile(part, 0.9))
		s.Lost = append(s.Lost, float64(part.Sent-part.Succeeded+part.Dropped)/float64(part.Sent+part.Dropped))
	}
	for _, ms := range Latencies() {
		s.Answered = append(s.Answered, all.Answers.Share(ms)*float64(all.Succeeded)/float64(all.Sent+all.Dropped))
	}
	return s
}

func quantile(r queue.Requests, share float64) float64 {
	if r.Sent == 0 {
		return math.NaN()
	}
	return r.Latency.Quantile(share)
}

// thin returns the means of so many values after another. Values that are not known (NaN) are left out.
func thin(values []float64, each int64) []float64 {
	var out []float64
	for i := 0; i < len(values); i += int(each) {
		out = append(out, meanOf(values[i:min(len(values), i+int(each))]))
	}
	return out
}

// meanOf returns the mean of the values that are known, NaN if none is.
func meanOf(values []float64) float64 {
	var sum, n float64
	for _, v := range values {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / n
}

package signal

import (
	"slices"

	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

// demandLog keeps the requests at each observation of the window: those on each node, and those of unschedulable pods.
//
// The load is the sum of both. It does not change when a pod is bound or evicted, nor between the observations before
// and after that, where both parts are interpolated linearly. Therefore all series have samples at the same times: a
// new node has zero at the previous observation, and a node that has gone has zero at the first observation without
// it.
type demandLog struct {
	window, spacing int64 // ms; closer observations are merged
	times           []int64
	rows            map[*period]*row
	demand          [dimensions]samples.Series
}

// row has the samples of one node. It counts in [start, end); end 0 = the node exists.
type row struct {
	start, end int64
	samples    [dimensions]samples.Series
}

func newDemandLog(f *Forecast) demandLog {
	return demandLog{
		window:  (f.Window + f.Interval).Milliseconds(),
		spacing: f.Interval.Milliseconds() / 2,
		rows:    map[*period]*row{},
	}
}

// record adds the loads of workers and the demand at now, which must be later than all observations.
func (l *demandLog) record(now int64, present []loadedNode, demand loads) {
	if n := len(l.times); n > 1 && now-l.times[n-2] < l.spacing {
		l.drop(l.times[n-1])
	}
	for _, c := range present {
		l.row(c.period, now).append(now, c.load)
	}
	for _, r := range l.rows {
		if r.end == 0 && r.last() < now {
			r.append(now, loads{})
			r.end = now + 1
		}
	}
	for d := range l.demand {
		l.demand[d] = append(l.demand[d], pipeline.Sample{T: now, V: demand[d]})
	}
	l.times = append(l.times, now)
	l.trim(now - l.window)
}

// row returns the row of a worker, a new one if needed.
func (l *demandLog) row(s *period, now int64) *row {
	if r := l.rows[s]; r != nil {
		return r
	}
	r := &row{start: min(s.start, now)}
	if n := len(l.times); n > 0 {
		r.start = l.times[n-1]
		r.append(r.start, loads{})
	}
	l.rows[s] = r
	return r
}

func (r *row) append(t int64, load loads) {
	for d := range r.samples {
		r.samples[d] = append(r.samples[d], pipeline.Sample{T: t, V: load[d]})
	}
}

// last returns the time of the newest sample.
func (r *row) last() int64 { return r.samples[0][len(r.samples[0])-1].T }

// drop removes the observations from t on.
func (l *demandLog) drop(t int64) {
	l.times = slices.DeleteFunc(l.times, func(x int64) bool { return x >= t })
	for d := range l.demand {
		l.demand[d] = l.demand[d].Before(t)
	}
	for s, r := range l.rows {
		if r.end > t {
			r.end = 0
		}
		for d := range r.samples {
			r.samples[d] = r.samples[d].Before(t)
		}
		if len(r.samples[0]) == 0 {
			delete(l.rows, s)
		}
	}
}

// trim drops observations before t, except for the newest: the first tick of the window is interpolated from it.
func (l *demandLog) trim(t int64) {
	skip := 0
	for skip+1 < len(l.times) && l.times[skip+1] <= t {
		skip++
	}
	if skip == 0 {
		return
	}
	l.times = slices.Delete(l.times, 0, skip)
	oldest := l.times[0]
	for d := range l.demand {
		l.demand[d] = slices.Delete(l.demand[d], 0, l.demand[d].From(oldest))
	}
	for s, r := range l.rows {
		for d := range r.samples {
			r.samples[d] = slices.Delete(r.samples[d], 0, r.samples[d].From(oldest))
		}
		if r.end != 0 && r.end <= oldest {
			delete(l.rows, s)
		}
	}
}

// instances returns the workers as instances of the pipeline. If none exists, it adds one without load, so that the
// demand counts in the newest tick.
func (l *demandLog) instances(d dimension, buf []pipeline.Instance) []pipeline.Instance {
	live := false
	for s, r := range l.rows {
		buf = append(buf, pipeline.Instance{ID: s.id, Start: r.start, End: r.end, Samples: r.samples[d]})
		live = live || r.end == 0
	}
	if !live && len(l.times) > 0 {
		idle := pipeline.Instance{Start: l.times[0]}
		for _, t := range l.times {
			idle.Samples = append(idle.Samples, pipeline.Sample{T: t})
		}
		buf = append(buf, idle)
	}
	return buf
}

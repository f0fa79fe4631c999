package signal

import (
	"slices"

	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

// ledger keeps what was requested at each observation of the window: of each node, and of none yet.
//
// The load is the sum of both, and does not change when a pod passes from one to the other, nor between the observations
// before and after that, where all is taken to pass evenly. So that this holds, all are noted at the same times: one who
// has come carried nothing at the observation before, and one who has gone carries nothing at the first without it.
type ledger struct {
	window, spacing int64 // ms; observations that are closer than spacing become one
	times           []int64
	rows            map[*spell]*row
	demand          [dimensions]samples.Series
}

// row is one node's. It takes part in [start, end); end 0 = it goes on.
type row struct {
	start, end int64
	samples    [dimensions]samples.Series
}

func newLedger(f *Forecast) ledger {
	return ledger{window: (f.Window + f.Interval).Milliseconds(), spacing: f.Interval.Milliseconds() / 2, rows: map[*spell]*row{}}
}

// record notes the loads of workers and the demand at now, which must be after the observations there are.
func (l *ledger) record(now int64, present []carrier, demand loads) {
	if n := len(l.times); n > 1 && now-l.times[n-2] < l.spacing {
		l.drop(l.times[n-1])
	}
	for _, c := range present {
		l.row(c.spell, now).append(now, c.load)
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
	l.forget(now - l.window)
}

// row returns that of a worker, a new one if there is none.
func (l *ledger) row(s *spell, now int64) *row {
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

// last is the time of the newest sample.
func (r *row) last() int64 { return r.samples[0][len(r.samples[0])-1].T }

// drop takes back the observations from t on.
func (l *ledger) drop(t int64) {
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

// forget lets go of what is before t, but for the newest of it, which the first tick of the window is interpolated from.
func (l *ledger) forget(t int64) {
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

// instances returns the workers as the pipeline takes them. Without any that goes on there is one that carries nothing, so
// that the demand is still told at the newest tick.
func (l *ledger) instances(d dimension, buf []pipeline.Instance) []pipeline.Instance {
	live := false
	for s, r := range l.rows {
		buf = append(buf, pipeline.Instance{ID: s.id, Start: r.start, End: r.end, Samples: r.samples[d]})
		live = live || r.end == 0
	}
	if !live && len(l.times) > 0 {
		nobody := pipeline.Instance{Start: l.times[0]}
		for _, t := range l.times {
			nobody.Samples = append(nobody.Samples, pipeline.Sample{T: t})
		}
		buf = append(buf, nobody)
	}
	return buf
}

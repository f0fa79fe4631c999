package lab

import "time"

// Load is what arrives, in requests per second. It is what is true, not what is measured: it has no noise of counting.
type Load interface {
	Rate(t int64) float64
}

// World is the pods of a workload under a load.
type World interface {
	// Advance plays until a time, which is not before any that it has been given.
	Advance(to int64)
	// View shows the world as it is at the time it has been played to.
	View() *View
	// SetTarget asks for a number of pods. Pods that are too many are removed at once: those that are not ready first,
	// then the newest.
	SetTarget(n int)
	// Second tells of the second that has just been played.
	Second() Second
}

// Second is what was true in one second of a run. What scalers do has no influence on Rate and Offered: they tell of what
// users wanted, without the noise of counting.
type Second struct {
	Rate    float64 // requests per second that were to arrive, on average
	Offered float64 // their work, in pods of average speed that it would keep busy
	Pods    int     // pods that exist, ready or not: what is paid for
	Ready   int     // pods that are ready and that the proxy knows
	Target  int
}

// Change is one change of the target.
type Change struct {
	T        int64
	From, To int
}

// Record is what happened in a run.
type Record struct {
	From    int64    // when the part that counts began; what was before is lead-in
	Seconds []Second // from From on
	Changes []Change // from From on
}

// Span is the length of a run: a lead-in, in which scalers may look around, and the part that counts. Both are whole seconds.
type Span struct{ Lead, Length time.Duration }

// Run plays a scaler against a world from time 0 to the end of the span. progress, if not nil, is called after each second.
func Run(w World, s Scaler, span Span, progress func(t int64)) *Record {
	r := &Record{From: span.Lead.Milliseconds()}
	end := r.From + span.Length.Milliseconds()
	for t := int64(0); t < end; t += second {
		for at := s.Next(); at < t+second; at = s.Next() {
			w.Advance(max(at, t))
			r.apply(w, s)
			if s.Next() <= at {
				panic("a scaler wants to look again at a time that has passed")
			}
		}
		w.Advance(t + second)
		if t >= r.From {
			r.Seconds = append(r.Seconds, w.Second())
		}
		if progress != nil {
			progress(t + second)
		}
	}
	return r
}

func (r *Record) apply(w World, s Scaler) {
	v := w.View()
	from, now := v.Target, v.Now
	to := max(v.Min, min(s.Decide(v), v.Max))
	if to == from {
		return
	}
	w.SetTarget(to)
	if now >= r.From {
		r.Changes = append(r.Changes, Change{T: now, From: from, To: to})
	}
}

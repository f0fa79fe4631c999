// Package lab plays scalers against loads in virtual time, to compare how well they serve users and
// at what cost.
//
// A [World] is the pods of one workload under a load: package world/queue simulates every request,
// world/fluid only the amount of work of each pod, which is enough for weeks of traffic. A [Scaler]
// looks at the world through a [View], which shows no more than a cluster would, and decides how
// many pods there should be. [Run] plays one against the other and keeps a [Record], of which
// package score makes figures.
//
// Times are milliseconds from the start of a run. A run is a function of its settings and its seed:
// its packages read no clock and draw from no generator but those made by [Random].
package lab

import (
	"math/rand/v2"
	"time"
)

// Load is what arrives, in requests per second. It is what is true, not what is measured: it has no
// noise of counting.
type Load interface {
	Rate(t int64) float64
}

// World is the pods of a workload under a load.
type World interface {
	// Advance plays until a time, which is not before any that it has been given.
	Advance(to int64)
	// View shows the world as it is at the time it has been played to.
	View() *View
	// SetTarget asks for a number of pods. Pods that are too many are removed at once: those that
	// are not ready first, then the newest.
	SetTarget(n int)
	// Second returns the second that has just been played.
	Second() Second
}

// Second is what was true in one second of a run. Rate and Offered are the demand, without the
// noise of counting; scalers have no influence on them.
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

// Span is the length of a run: a lead-in, in which scalers may look around, and the part that
// counts. Both are whole seconds.
type Span struct{ Lead, Length time.Duration }

// Run plays a scaler against a world from time 0 to the end of the span. progress, if not nil, is
// called after each second.
func Run(w World, s Scaler, span Span, progress func(t int64)) *Record {
	r := &Record{From: span.Lead.Milliseconds()}
	end := r.From + span.Length.Milliseconds()
	for t := int64(0); t < end; t += second {
		for at := s.Next(); at < t+second; at = s.Next() {
			w.Advance(max(at, t))
			r.apply(w, s)
			if s.Next() <= at {
				panic("a scaler must not look at a time that has passed")
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

// View is what a scaler can see of the world: no more than a cluster would show it. It is good
// until the scaler returns.
type View struct {
	Now      int64
	Pods     []*Pod // in order of creation, those that ended within the last ten minutes included
	Target   int    // the replicas asked for
	Rose     int64  // when Target last rose, -1 before it did
	Fell     int64  // when Target last fell, -1 before it did
	Min, Max int
}

// Scaler decides how many pods there should be.
type Scaler interface {
	// Next is when the scaler looks next. It rises with every Decide.
	Next() int64
	// Decide looks at the world and returns the replicas desired; v.Target leaves things as they
	// are. What is beyond v.Min and v.Max is cut off.
	Decide(v *View) int
}

// Random returns the generator of one random part of a run. Each part has a stream of its own, so
// that two scalers with the same seed meet the same arrivals and pods.
func Random(seed uint64, stream string) *rand.Rand {
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(stream) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, h))
}

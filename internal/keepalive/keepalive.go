// Package keepalive decides how long capacity that is no longer needed should be kept, and when it is
// worth starting some before it is needed again.
//
// Units of capacity (nodes, pods) are numbered from 1, and a load that needs n of them needs units 1 to
// n. The time from when a unit is no longer needed until it is needed again is an idle period. The past
// idle periods of a unit say how likely it is to be needed again at each moment of this one. [History.Plan]
// finds the cheapest way through it, by backward induction: a kept or starting unit costs its time, one
// that is missing when it is needed costs [Costs.Missing], and a unit may be removed and started again.
// So units are kept for load that returns soon and at random, and removed and started again in time for
// load that returns on a schedule.
package keepalive

import (
	"slices"
	"time"
)

const (
	// maxIdle is the longest idle period that is waited for. A unit that was idle for longer counts as not
	// needed again.
	maxIdle = 2 * time.Hour
	// maxPeriods is the number of idle periods that are remembered, and maxRanges that of the ranges that
	// are idle at a time.
	maxPeriods = 64
	maxRanges  = 64
	// maxSamples is how many idle periods of a unit are looked at, the latest ones: old ones say little of
	// a load that has changed.
	maxSamples = 16
	// doubt is the number of past periods, in addition to the recorded ones, in which the unit was
	// not needed again: one return is no proof of a second.
	doubt = 1
	// stepsOfStart is how many steps of the induction a unit takes to start.
	stepsOfStart = 4
)

// jitter spreads each recorded period: the next one will not have the same length to the second.
var jitter = [...]float64{0.95, 1, 1.05}

// History is what is remembered of the units that a load needed. The zero History knows nothing. It is
// bounded and can be stored as JSON.
type History struct {
	Needed  int      `json:"needed"`            // units at the last observation
	Idle    []Idle   `json:"idle,omitempty"`    // units that are idle now, in ascending order
	Periods []Period `json:"periods,omitempty"` // that have ended, oldest first
}

// Idle is a range of units that are not needed since a time.
type Idle struct {
	First int       `json:"first"`
	Last  int       `json:"last"`
	Since time.Time `json:"since"`
}

// Period is an idle period of a range of units.
type Period struct {
	First   int   `json:"first"`
	Last    int   `json:"last"`
	Seconds int64 `json:"seconds"` // maxIdle: they were not needed again within that
}

// Costs are the costs that Plan weighs.
type Costs struct {
	// Missing is the time of one unit that is worth as much as having a unit when it is needed.
	Missing time.Duration
	// Startup is the time from starting a unit until it is ready; it is positive.
	Startup time.Duration
}

// Plan is the number of units that are worth having.
type Plan struct {
	Keep  int // units to keep if they exist: those that are needed and some idle ones
	Start int // units to start now if they do not exist; at most Keep
}

// Resume records how many units are needed after a time in which they were not observed. When units that
// were idle before that became needed is not known, so their periods are dropped.
func (h *History) Resume(needed int) { h.Needed, h.Idle = needed, nil }

// Observe records how many units are needed at a time. It is called often enough not to miss a change.
func (h *History) Observe(now time.Time, needed int) {
	switch {
	case needed < h.Needed:
		h.Idle = slices.Insert(h.Idle, 0, Idle{needed + 1, h.Needed, now})
		h.merge()
	case needed > h.Needed:
		h.use(now, needed)
	}
	h.Needed = needed
	h.expire(now)
}

// merge joins the two ranges that became idle closest in time, if there are too many.
func (h *History) merge() {
	if len(h.Idle) <= maxRanges {
		return
	}
	closest := 0
	for i := range h.Idle[1:] {
		if h.Idle[i].Since.Sub(h.Idle[i+1].Since) < h.Idle[closest].Since.Sub(h.Idle[closest+1].Since) {
			closest = i
		}
	}
	h.Idle[closest+1].First = h.Idle[closest].First
	h.Idle = slices.Delete(h.Idle, closest, closest+1)
}

// use ends the idle periods of units up to the number that is needed now.
func (h *History) use(now time.Time, needed int) {
	for len(h.Idle) > 0 && h.Idle[0].First <= needed {
		i := &h.Idle[0]
		last := min(i.Last, needed)
		h.record(Period{i.First, last, int64(now.Sub(i.Since) / time.Second)})
		if i.First = last + 1; i.First > i.Last {
			h.Idle = h.Idle[1:]
		}
	}
}

// expire ends the idle periods of units that were not needed for too long. Units with a higher number
// are idle for longer.
func (h *History) expire(now time.Time) {
	for n := len(h.Idle); n > 0 && now.Sub(h.Idle[n-1].Since) >= maxIdle; n-- {
		i := h.Idle[n-1]
		h.record(Period{i.First, i.Last, int64(maxIdle / time.Second)})
		h.Idle = h.Idle[:n-1]
	}
}

// record keeps a period. Once there are too many, the oldest one goes whose units have enough newer ones,
// so that frequent changes of a few units do not displace rare ones of others.
func (h *History) record(p Period) {
	h.Periods = append(h.Periods, p)
	if len(h.Periods) <= maxPeriods {
		return
	}
	oldest := slices.IndexFunc(h.Periods, func(p Period) bool {
		return len(h.samples(p.First)) == maxSamples && len(h.samples(p.Last)) == maxSamples
	})
	h.Periods = slices.Delete(h.Periods, max(0, oldest), max(0, oldest)+1)
}

// samples returns the lengths of the latest idle periods of a unit.
func (h *History) samples(unit int) []time.Duration {
	var out []time.Duration
	for _, p := range h.Periods {
		if p.First <= unit && unit <= p.Last {
			out = append(out, time.Duration(p.Seconds)*time.Second)
		}
	}
	return out[max(0, len(out)-maxSamples):]
}

// Returns returns how often a unit was needed again, and the median of the times after which it was.
func (h *History) Returns(unit int) (times int, median time.Duration) {
	lengths := slices.DeleteFunc(h.samples(unit), func(l time.Duration) bool { return l >= maxIdle })
	if len(lengths) == 0 {
		return 0, 0
	}
	slices.Sort(lengths)
	return len(lengths), lengths[len(lengths)/2]
}

// Equal reports whether two histories are the same.
func (h *History) Equal(other *History) bool {
	return h.Needed == other.Needed && slices.Equal(h.Periods, other.Periods) &&
		slices.EqualFunc(h.Idle, other.Idle,
			func(a, b Idle) bool { return a.First == b.First && a.Last == b.Last && a.Since.Equal(b.Since) })
}

// Clone returns a copy that shares nothing.
func (h *History) Clone() History {
	return History{h.Needed, slices.Clone(h.Idle), slices.Clone(h.Periods)}
}

// Plan returns the units that are worth keeping and starting at a time.
func (h *History) Plan(now time.Time, c Costs) Plan {
	out := Plan{h.Needed, h.Needed}
	for _, i := range slices.Backward(h.Idle) {
		for unit := i.Last; unit >= i.First && out.Start == h.Needed; unit = h.below(unit) {
			keep, start := h.remaining(unit, now.Sub(i.Since), c).decide(c)
			if keep {
				out.Keep = max(out.Keep, unit)
			}
			if start {
				out.Start = unit
			}
		}
	}
	out.Keep = max(out.Keep, out.Start)
	return out
}

// below returns the next lower unit that has other idle periods than this one.
func (h *History) below(unit int) int {
	next := 0
	for _, p := range h.Periods {
		if p.First <= unit {
			next = max(next, p.First-1)
		}
		if p.Last < unit {
			next = max(next, p.Last)
		}
	}
	return next
}

// remaining is how the rest of an idle period may go, by how past ones went: the number of returns in
// each step from now on, and the number that are still idle at the beginning of each.
type remaining struct {
	returns []float64
	idle    []float64 // one more than returns
}

// remaining looks at the past periods of a unit that were longer than its present one.
func (h *History) remaining(unit int, age time.Duration, c Costs) remaining {
	step := c.Startup / stepsOfStart
	var out remaining
	never := doubt * len(jitter)
	for _, length := range h.samples(unit) {
		if length >= maxIdle {
			never += len(jitter)
			continue
		}
		for _, f := range jitter {
			left := time.Duration(f*float64(length)) - age
			if left <= 0 {
				continue
			}
			for int(left/step) >= len(out.returns) {
				out.returns = append(out.returns, 0)
			}
			out.returns[left/step]++
		}
	}
	out.idle = make([]float64, len(out.returns)+1)
	out.idle[len(out.returns)] = float64(never)
	for i := len(out.returns) - 1; i >= 0; i-- {
		out.idle[i] = out.idle[i+1] + out.returns[i]
	}
	return out
}

// decide reports whether to keep a unit that exists, and whether to start one that does not. The cost of
// each step is summed over all ways in which the period may go on, in steps of one unit's time.
func (r remaining) decide(c Costs) (keep, start bool) {
	missing := float64(c.Missing) / float64(c.Startup) * stepsOfStart
	n := len(r.returns)
	on, off := make([]float64, n+1), make([]float64, n+1) // the least cost from a step on
	for i := n - 1; i >= 0; i-- {
		kept := r.billed(i) + on[i+1]
		waited := r.returns[i]*missing + off[i+1]
		started := r.starting(i, missing) + on[min(i+stepsOfStart, n)]
		off[i] = min(waited, started)
		on[i] = min(kept, off[i])
		keep, start = kept < off[i], started < waited
	}
	return keep, start
}

// billed is the cost of a unit during a step: half of it if the period ends within.
func (r remaining) billed(i int) float64 { return r.idle[i+1] + r.returns[i]/2 }

// starting is the cost of a unit that starts at a step: its time until it is ready, and a part of a
// missing one for each period that ends before.
func (r remaining) starting(at int, missing float64) float64 {
	cost := 0.0
	for i := at; i < at+stepsOfStart && i < len(r.returns); i++ {
		late := (float64(at+stepsOfStart-i) - 0.5) / stepsOfStart
		cost += r.billed(i) + r.returns[i]*missing*late
	}
	return cost
}

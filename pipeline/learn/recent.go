package learn

import (
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

const (
	// leastStep is the shortest step in which a load is kept.
	leastStep = 5 * time.Second
	// recentSteps is the number of steps that are kept: 40 minutes of the shortest, which is needed to learn a quarter
	// of an hour ahead.
	recentSteps = 480
)

// recent holds the newest loads, in means of some seconds.
type recent struct {
	step  int64     // ms
	end   int64     // of the newest step (ms)
	means []float64 // of steps, oldest first; NaN where the load is not known

	// least has lower bounds of the newest steps, the newest last; NaN where they are not known.
	least [4]float64

	newest  int64   // the time of the newest load (ms)
	sum     float64 // of the step that is open
	known   int64   // the number of loads in it
	missing bool    // a load of it is not known
	clipped bool    // or was more
}

// nothing is known of any step.
var nothing = [4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}

// newRecent returns an empty one with steps of whole intervals.
func newRecent(interval time.Duration) recent {
	r := recent{step: stepOf(interval)}
	r.forget(0, 0)
	return r
}

// stepOf returns the shortest step of whole intervals (ms).
func stepOf(interval time.Duration) int64 {
	interval = max(interval, time.Millisecond)
	return ((leastStep + interval - 1) / interval * interval).Milliseconds()
}

// forget starts over: the next step begins at end, and times that are not after the newest (ms) are ignored.
func (r *recent) forget(end, newest int64) {
	*r = recent{step: r.step, means: r.means[:0], least: nothing, end: end, newest: newest}
}

func (r *recent) clone() recent {
	out := *r
	out.means = slices.Clone(r.means)
	return out
}

// add adds the load at a time (ms), NaN if it is not known; a clipped one was at least that. It calls complete for each
// step that it completes, with the mean of its loads, NaN if one of them is not known, and with the least that they
// show. Times that are not after the newest are ignored, unless they are so far away that the clock must have been set.
func (r *recent) add(t int64, load float64, clipped bool, complete func(mean, shown float64)) {
	begin := series.FloorDiv(t, r.step) * r.step
	span := recentSteps * r.step
	if r.end == 0 && r.newest == 0 || begin > r.end+span || begin < r.end-span {
		r.forget(begin, t-1)
	}
	if t <= r.newest || begin < r.end {
		return
	}
	r.newest = t
	for r.end < begin {
		complete(r.close())
	}
	if !series.Finite(load) {
		r.missing = true
		return
	}
	r.clipped = r.clipped || clipped
	r.sum += load
	r.known++
}

// after returns the first tick after the newest load; 0 if the newest load is far ahead of the grid.
func (r *recent) after(g series.Grid) int {
	if r.newest > g.Tick(g.N-1)+recentSteps*r.step {
		return 0
	}
	return g.Index(r.newest + 1)
}

// close completes the open step.
func (r *recent) close() (mean, shown float64) {
	shown = r.sum / float64(r.known) // NaN if none is known
	mean = shown
	if r.missing || r.clipped {
		mean = math.NaN()
	}
	copy(r.least[:], r.least[1:])
	newest := &r.least[len(r.least)-1]
	if *newest = shown; r.missing {
		*newest = math.NaN()
	}
	if len(r.means) == recentSteps {
		copy(r.means, r.means[1:])
		r.means = r.means[:recentSteps-1]
	}
	r.means = append(r.means, mean)
	r.end += r.step
	r.sum, r.known, r.missing, r.clipped = 0, 0, false, false
	return mean, shown
}

// atLeast returns a lower bound of the mean of the newest n steps; NaN if one of them has none.
func (r *recent) atLeast(n int) float64 {
	sum := 0.0
	for _, v := range r.least[len(r.least)-n:] {
		sum += v
	}
	return sum / float64(n)
}

// before returns the newest of the steps that had ended at a time, n at most; none if something is missing between.
func (r *recent) before(t int64, n int) []float64 {
	if t-r.end >= r.step {
		return nil
	}
	late := max(0, series.FloorDiv(r.end-t+r.step-1, r.step))
	known := r.means[:max(0, int64(len(r.means))-late)]
	return known[max(0, len(known)-n):]
}

// maxDescribed is the number of the shortest steps that a description looks back.
const maxDescribed = describedSeconds * 1000 / int(leastStep/time.Millisecond)

// with appends to steps those that a description of the loads of a run needs: the loads in steps of some seconds, and
// the steps that had ended before them. It returns when the last one ends (ms).
func (r *recent) with(l *series.Loads, steps []float64) (all []float64, end int64, seconds float64) {
	each := max(1, int(r.step/l.Step))
	loads := l.Ticks[len(l.Ticks)%each:]
	end = l.Tick(l.N-1) + l.Step
	begin := end - int64(len(loads))*l.Step
	seconds = float64(each) * float64(l.Step) / 1000
	most := stepsOf(describedSeconds, seconds)
	loads = loads[max(0, len(loads)-most*each):]
	steps = append(steps, r.before(begin, most-len(loads)/each)...)
	for ; len(loads) > 0; loads = loads[each:] {
		steps = append(steps, series.Mean(loads[:each]))
	}
	return steps, end, seconds
}

// meanOf returns the mean of the known ones among the n steps before the e-th; NaN if less than half of them are known.
func meanOf(means []float64, e, n int) float64 {
	sum, known := 0.0, 0
	for _, v := range means[max(0, e-n):e] {
		if !math.IsNaN(v) {
			sum += v
			known++
		}
	}
	if known == 0 || 2*known < min(n, e) {
		return math.NaN()
	}
	return sum / float64(known)
}

package learn

import (
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

const (
	// minStep is the shortest step to which loads are averaged.
	minStep = 5 * time.Second
	// recentSteps is the number of steps that are kept: 40 minutes of the shortest steps, as learning 15
	// minutes ahead requires.
	recentSteps = 480
)

// recent holds the newest loads as means of steps of some seconds.
type recent struct {
	step  int64     // ms
	end   int64     // of the newest step (ms)
	means []float64 // of steps, oldest first; NaN where the load is not known

	// lowerBounds are lower bounds of the newest steps, the newest last; NaN if not known.
	lowerBounds [4]float64

	newest  int64   // the time of the newest load (ms)
	sum     float64 // of the open step
	known   int64   // number of loads in the open step
	missing bool    // a load of the open step is not known
	clipped bool    // a load of the open step was clipped
}

// noBounds are the lower bounds if no step is known.
var noBounds = [4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}

// newRecent returns an empty recent whose steps are whole intervals.
func newRecent(interval time.Duration) recent {
	r := recent{step: stepOf(interval)}
	r.reset(0, 0)
	return r
}

// stepOf returns the length of a step (ms): the shortest one of whole intervals.
func stepOf(interval time.Duration) int64 {
	interval = max(interval, time.Millisecond)
	return ((minStep + interval - 1) / interval * interval).Milliseconds()
}

// reset starts over: the next step begins at end, and times up to newest (ms) are ignored.
func (r *recent) reset(end, newest int64) {
	*r = recent{step: r.step, means: r.means[:0], lowerBounds: noBounds, end: end, newest: newest}
}

func (r *recent) clone() recent {
	out := *r
	out.means = slices.Clone(r.means)
	return out
}

// add adds the load at a time (ms); NaN if it is not known. A clipped load is a lower bound. For each step that
// ends, it calls complete with the mean of its loads (NaN if one of them is not known) and with the mean of the
// visible loads. Times up to the newest one are ignored, unless they are so far off that the clock must have
// been set.
func (r *recent) add(t int64, load float64, clipped bool, complete func(mean, shown float64)) {
	begin := series.FloorDiv(t, r.step) * r.step
	span := recentSteps * r.step
	if r.end == 0 && r.newest == 0 || begin > r.end+span || begin < r.end-span {
		r.reset(begin, t-1)
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
	copy(r.lowerBounds[:], r.lowerBounds[1:])
	newest := &r.lowerBounds[len(r.lowerBounds)-1]
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

// lowerBound returns a lower bound of the mean of the newest n steps; NaN if one of them is not known.
func (r *recent) lowerBound(n int) float64 {
	sum := 0.0
	for _, v := range r.lowerBounds[len(r.lowerBounds)-n:] {
		sum += v
	}
	return sum / float64(n)
}

// endedBefore returns the newest steps that had ended at a time, at most n; none if there is a gap before t.
func (r *recent) endedBefore(t int64, n int) []float64 {
	if t-r.end >= r.step {
		return nil
	}
	late := max(0, series.FloorDiv(r.end-t+r.step-1, r.step))
	known := r.means[:max(0, int64(len(r.means))-late)]
	return known[max(0, len(known)-n):]
}

// maxDescribed is the number of the shortest steps that a description covers.
const maxDescribed = describedSeconds * 1000 / int(minStep/time.Millisecond)

// stepsFor appends to steps what a description of the loads of a run needs: the loads averaged over steps, and
// the stored steps that had ended before. It also returns when the last step ends (ms) and the length of a
// step.
func (r *recent) stepsFor(l *series.Loads, steps []float64) (all []float64, end int64, seconds float64) {
	each := max(1, int(r.step/l.Step))
	loads := l.Ticks[len(l.Ticks)%each:]
	end = l.Tick(l.N-1) + l.Step
	begin := end - int64(len(loads))*l.Step
	seconds = float64(each) * float64(l.Step) / 1000
	maxSteps := stepsOf(describedSeconds, seconds)
	loads = loads[max(0, len(loads)-maxSteps*each):]
	steps = append(steps, r.endedBefore(begin, maxSteps-len(loads)/each)...)
	for ; len(loads) > 0; loads = loads[each:] {
		steps = append(steps, series.Mean(loads[:each]))
	}
	return steps, end, seconds
}

// meanOf returns the mean of the known ones among the n steps before index e; NaN if less than half are known.
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

package evaluation

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// finest and coarsest are the steps that are used: of a finer recording each step's newest
	// sample is, and a coarser one tells nothing.
	finest   = 5 * time.Second
	coarsest = 5 * time.Minute
	// missedScrapes is for how many steps a sample counts: one scrape may be missed.
	missedScrapes = 2
	// fewestSamples are needed to tell how far they are apart.
	fewestSamples = 10
)

// Record is what Foresail's replicas have recorded of a PredictedMetric, at times a step apart.
type Record struct {
	From, To time.Time // what is reported on; moments begin earlier
	Begin    time.Time // of the first moment
	Step     time.Duration
	Moments  []Moment
	Replicas int // that have recorded something
}

// Moment is what was known at one time, of the newest scrape; NaN where a metric is missing.
type Moment [numberOfMetrics]float64

// at is the time of a moment.
func (r *Record) at(i int) time.Time { return r.Begin.Add(time.Duration(i) * r.Step) }

// first returns the first moment at or after a time.
func (r *Record) first(t time.Time) int {
	return max(0, int((t.Sub(r.Begin)+r.Step-1)/r.Step))
}

// merge makes one record of what several replicas have recorded. All forecast the same, each by
// itself, so that at any time one of them is believed: the same as before, as long as it knows the
// load. Their values are never added up, and no change is made up by going from one to the other
// and back.
func merge(replicas []*replica, from, to time.Time) (*Record, error) {
	step, err := usualStep(replicas)
	if err != nil {
		return nil, err
	}
	begin := from.Truncate(time.Second)
	r := &Record{From: from, To: to, Begin: begin, Step: step, Replicas: len(replicas)}
	cursors := make([]cursor, len(replicas))
	for i := range cursors {
		cursors[i].replica = replicas[i]
	}
	believed := 0
	for at := begin; !at.After(to); at = at.Add(step) {
		for i := range cursors {
			cursors[i].advance(at.UnixMilli(), step.Milliseconds())
		}
		believed = choose(cursors, believed)
		r.Moments = append(r.Moments, cursors[believed].moment)
	}
	return r, nil
}

// usualStep is the median of the times between two samples of the number of pods, which there always is.
func usualStep(replicas []*replica) (time.Duration, error) {
	var steps []int64
	samples := 0
	for _, x := range replicas {
		samples += len(x.series[readyPods])
		for i, s := range x.series[readyPods] {
			if i > 0 {
				steps = append(steps, s.t-x.series[readyPods][i-1].t)
			}
		}
	}
	if samples < fewestSamples || len(steps) == 0 {
		return 0, fmt.Errorf("%w: of %s there are %d samples: a report needs at least %d", ErrNotRecorded, readyPods,
			samples, fewestSamples)
	}
	slices.Sort(steps)
	step := (time.Duration(steps[len(steps)/2]) * time.Millisecond).Round(time.Second)
	if step > coarsest {
		return 0, fmt.Errorf("samples of %s are %s apart: must be at most %s", readyPods, step, coarsest)
	}
	return max(step, finest), nil
}

// choose returns which replica to believe.
func choose(all []cursor, before int) int {
	for _, m := range []metric{load, loadPerInstance, readyPods} {
		if all[before].knows(m) {
			return before
		}
		if i := slices.IndexFunc(all, func(c cursor) bool { return c.knows(m) }); i >= 0 {
			return i
		}
	}
	return before
}

// cursor goes through the samples of a replica.
type cursor struct {
	*replica
	next   [numberOfMetrics]int // the first sample after the moment
	moment Moment
}

func (c *cursor) knows(m metric) bool {
	return !math.IsNaN(c.moment[m]) && !math.IsNaN(c.moment[readyPods])
}

// advance moves to a time. Metrics of a scrape before that of the number of pods are no longer
// exposed, as those of a forecast are while there is none.
func (c *cursor) advance(t, step int64) {
	scraped := int64(math.MinInt64 / 2)
	for m, all := range c.series {
		i := c.next[m]
		for i < len(all) && all[i].t <= t {
			i++
		}
		c.next[m] = i
		c.moment[m] = math.NaN()
		if i == 0 {
			continue
		}
		newest := all[i-1]
		if newest.t <= t-missedScrapes*step || newest.t < scraped-step/2 {
			continue
		}
		c.moment[m] = newest.v
		if metric(m) == readyPods {
			scraped = newest.t
		}
	}
}

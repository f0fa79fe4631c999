package forecaster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

// readings are the samples that the forecasts of a feed are made from, and the failures of the others.
type readings struct {
	series          map[string]*samples.Packed // by instance
	generation      int                        // how often any of these were dropped
	inboxGeneration int                        // how often the inbox has released them
	newest          int64                      // time of the newest sample (ms), 0 without one
	failing         map[string]failing
	refused         refusals
	sourceErr       error     // why the source as a whole cannot be read
	sourceFailures  int       // how many times in a row it was reported
	sourceFailed    time.Time // the first of these times
	coverage        coverage
	spacing         spacing
}

// failing is an instance whose last reading failed.
type failing struct {
	err   error
	times int // how many readings failed in a row
	since time.Time
}

// reset drops the samples.
func (r *readings) reset() {
	r.series, r.coverage, r.refused = map[string]*samples.Packed{}, coverage{}, refusals{}
	r.generation++
}

// retainOnly drops samples and failures of all instances but those present.
func (r *readings) retainOnly(present map[string]bool) {
	before := len(r.series)
	maps.DeleteFunc(r.series, func(id string, _ *samples.Packed) bool { return !present[id] })
	if len(r.series) < before {
		r.generation++
	}
	maps.DeleteFunc(r.failing, func(id string, _ failing) bool { return !present[id] })
}

// rateSpan is the time over which the rate of samples is measured.
const rateSpan = 10 * time.Second

// perSecond returns the rate of samples, of all instances.
func (r *readings) perSecond(now time.Time) float64 {
	count := 0
	for _, x := range r.series {
		count += x.CountSince(now.Add(-rateSpan).UnixMilli())
	}
	return float64(count) / rateSpan.Seconds()
}

// keptCapacity is up to how many samples the memory of an arrival is kept for the next ones. After
// a backfill it is not.
const keptCapacity = 16

// spareArrivals is the number of instances whose arrivals may be kept, above twice the number that
// is read: some have gone.
const spareArrivals = 16

// collect takes what has arrived, and returns the replicas of the target.
func (r *readings) collect(b *inbox, now time.Time) replicas {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.sourceErr, r.sourceFailures, r.sourceFailed = b.sourceErr, b.failures, b.failed
	if len(b.arrivals) > 2*max(len(b.fresh), len(r.series))+spareArrivals {
		b.drop(func(a *arrival) bool { return !a.read })
	}
	if r.inboxGeneration != r.generation {
		for _, a := range b.arrivals {
			a.series = nil // which may have been dropped
		}
		r.inboxGeneration = r.generation
	}
	for _, a := range b.fresh {
		err := a.err
		for _, x := range a.samples {
			if !r.storeSample(a, x, b.limits.maxSamples) {
				a.full, err = now, b.limits.tooMany()
			}
		}
		r.refused.add(a.refused, now)
		r.recordFailure(a, err, now)
		a.samples, a.err, a.failures, a.succeeded, a.read, a.refused = a.samples[:0], nil, 0, false, false, 0
		if cap(a.samples) > keptCapacity {
			a.samples = nil
		}
	}
	clear(b.fresh)
	b.fresh = b.fresh[:0]
	return b.replicas
}

// recordFailure counts the readings of an instance that failed in a row.
func (r *readings) recordFailure(a *arrival, err error, now time.Time) {
	if err == nil {
		delete(r.failing, a.instance)
		return
	}
	x := r.failing[a.instance]
	if a.succeeded || x.times == 0 {
		x = failing{since: now}
	}
	r.failing[a.instance] = failing{err, x.times + max(1, a.failures), x.since}
}

// storeSample adds a sample to those of an instance, of which there are at most so many. It returns
// false if older ones gave way.
func (r *readings) storeSample(a *arrival, x pipeline.Sample, maxSamples int) bool {
	if a.series == nil {
		a.series = r.series[a.instance]
	}
	if a.series == nil {
		a.series = &samples.Packed{}
		r.series[a.instance] = a.series
	}
	full := a.series.Len() >= maxSamples
	if full {
		a.series.DropOldest(maxSamples/8 + 1)
	}
	a.series.Add(x)
	r.newest = max(r.newest, x.T)
	return !full
}

// failures returns why pods cannot be read, or why readings of them since a time do not count.
func (r *readings) failures(t *scaleTarget, since, now time.Time) []snapshot.Failure {
	reasons := r.refused.reasons(since)
	if len(r.failing)+len(reasons) == 0 {
		return nil
	}
	names := map[string]string{}
	for _, m := range t.instances(now) {
		names[m.ID] = m.Pod.Name
	}
	maps.DeleteFunc(reasons, func(id string, _ error) bool { return names[id] == "" }) // its pod has ended
	for id, x := range r.failing {
		reasons[id] = x.err
	}
	delete(reasons, source.WholeTarget)
	out := make([]snapshot.Failure, 0, len(reasons))
	for id, err := range reasons {
		out = append(out, snapshot.Failure{Pod: names[id], Err: err})
	}
	slices.SortFunc(out, func(a, b snapshot.Failure) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// failure returns why nothing can be read, or "" if a reading has succeeded or one may still
// succeed. The usual cause is a wrong metric, port, path or query, which waiting does not mend.
func (r *readings) failure(c *Config, active []podtracker.Instance, now time.Time) string {
	if c.Params.Whole {
		if x := r.failing[source.WholeTarget]; x.times >= confirmed && now.Sub(x.since) >= lasting(x.err, 0) {
			return "the load of the target cannot be read: " + x.err.Error()
		}
		if r.sourceFails(c, now) && r.series[source.WholeTarget] == nil {
			return "the load of the target cannot be read: " + r.sourceErr.Error()
		}
		return ""
	}
	settled := r.unread(active, now)
	switch {
	case len(settled) == 0:
		return ""
	case r.sourceFails(c, now):
		return fmt.Sprintf("%s: %v", unreadable(len(settled)), r.sourceErr)
	}
	for _, x := range settled {
		reading := r.failing[x.ID]
		if reading.times < confirmed {
			return ""
		}
		if mayPass(reading.err) && (now.Sub(x.Start) < newFor || now.Sub(reading.since) < settledAfter) {
			return ""
		}
	}
	return fmt.Sprintf("%s: %s", unreadable(len(settled)), r.errorsOf(settled))
}

// sourceFails reports whether the source as a whole has failed for long enough. A source that is
// pushed to does not count: its sender may be slow.
func (r *readings) sourceFails(c *Config, now time.Time) bool {
	return r.sourceFailures >= confirmed && now.Sub(r.sourceFailed) >= lasting(r.sourceErr, settledAfter) &&
		c.Interval > 0
}

// unread returns the pods whose failures count; none if any active pod has been read.
func (r *readings) unread(active []podtracker.Instance, now time.Time) (settled []podtracker.Instance) {
	for _, x := range active {
		if !x.End.IsZero() {
			continue
		}
		if s := r.series[x.ID]; s != nil && s.Len() > 0 {
			return nil
		}
		if now.Sub(x.Start) >= settledAfter {
			settled = append(settled, x)
		}
	}
	return settled
}

// errorsOf returns the errors of some pods. Errors that differ in names and addresses of pods alone are listed once.
func (r *readings) errorsOf(pods []podtracker.Instance) string {
	var texts []string
	seen := map[string]bool{}
	for i := range pods {
		err := r.failing[pods[i].ID].err
		if key := anonymous(err, &pods[i]); !seen[key] && len(texts) < shownErrors {
			seen[key] = true
			texts = append(texts, fmt.Sprintf("pod %s: %v", pods[i].Pod.Name, err))
		}
	}
	if len(texts) == 1 {
		return r.failing[pods[0].ID].err.Error()
	}
	return strings.Join(texts, "; ")
}

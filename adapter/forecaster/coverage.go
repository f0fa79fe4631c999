package forecaster

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/pipeline"
)

const (
	// warmUpTicks is how many sample intervals the whole fleet must have been read for before a forecast is served.
	warmUpTicks = 10
	// coverWait is how long the first reading of a pod is waited for before the others go on without it.
	coverWait = 10 * time.Second
)

// coverage knows from when on every instance was read. The sum over a fleet of which some pods have not been read yet
// is not a small load but no load at all: it would look like a sudden rise as the others come in.
type coverage struct {
	begun time.Time // when the first sample was seen
	since int64     // the time from which on the fleet is covered (ms), 0 = not yet
}

// cover returns the time from which on the samples make up the load (ms), or an *Unavailable. To instances that have
// been silent since before that it gives a sample, as far as the others vouch for them.
func (c *coverage) cover(all []pipeline.Instance, p pipeline.Params, now time.Time) (int64, error) {
	nowMs := now.UnixMilli()
	active, unread := 0, 0
	first := int64(0)
	for i := range all {
		if all[i].End != 0 {
			continue
		}
		active++
		if len(all[i].Samples) == 0 {
			unread++
		} else {
			first = max(first, all[i].Samples[0].T)
		}
	}
	switch {
	case active == 0:
		*c = coverage{}
		return 0, &snapshot.Unavailable{Reason: snapshot.NoReadyPods, Message: "the target has no ready pod"}
	case active == unread:
		return 0, &snapshot.Unavailable{Reason: snapshot.WaitingForSamples, Message: fmt.Sprintf("none of %d ready pods has been read yet", active)}
	case c.begun.IsZero():
		c.begun = now
	}
	if c.since == 0 {
		if unread > 0 && now.Sub(c.begun) < coverWait {
			return 0, &snapshot.Unavailable{Reason: snapshot.WaitingForSamples, Message: fmt.Sprintf("%d of %d ready pods have not been read yet", unread, active)}
		}
		c.since = first
	}
	if warm := c.since + warmUpTicks*p.Interval.Milliseconds(); nowMs < warm {
		left := time.Duration(warm-nowMs) * time.Millisecond
		return 0, &snapshot.Unavailable{Reason: snapshot.WarmingUp, Message: fmt.Sprintf("all %d ready pods are read; a trend can be told in %s", active-unread, left.Round(time.Second))}
	}
	return c.since, vouch(all, max(c.since, nowMs-p.Window.Milliseconds()), p.Interval.Milliseconds())
}

// vouch gives each instance that was active at the start of the window and has not been read since the mean of the
// others there: without it a pod that serves but cannot be read would count as idle. Half of the fleet must be read.
func vouch(all []pipeline.Instance, start, interval int64) error {
	var silent []*pipeline.Instance
	sum, read := 0.0, 0
	for i := range all {
		x := &all[i]
		if x.End != 0 || x.Start > start {
			continue
		}
		at := slices.IndexFunc(x.Samples, func(s pipeline.Sample) bool { return s.T >= start })
		if at < 0 {
			silent = append(silent, x)
			continue
		}
		sum += x.Samples[at].V
		read++
	}
	if len(silent) > read {
		return &snapshot.Unavailable{Reason: snapshot.PodsUnreadable, Message: fmt.Sprintf("%d of %d pods cannot be read", len(silent), len(silent)+read)}
	}
	for _, x := range silent {
		mean := sum / float64(read)
		x.Samples = []pipeline.Sample{{T: start - interval, V: mean}, {T: start + interval, V: mean}}
	}
	return nil
}

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
	// coverWait is how long the first reading of a pod is waited for before the others go on without it, at the least.
	coverWait = 10 * time.Second
)

// coverage knows from when on every instance was read, and makes up for those that are not. The sum over a fleet of
// which some pods have not been read is not a small load but no load at all: it would look like a sudden rise as
// they come in, and like a sudden fall as others fall silent.
type coverage struct {
	begun int64 // when the first sample was seen (ms), 0 = not yet
	since int64 // the time from which on the fleet is covered (ms), 0 = not yet
}

// pace is the spans that coverage is judged by, in ms.
type pace struct {
	tick       int64 // Δt
	reading    int64 // how often an instance is read
	window     int64
	staleAfter int64
}

// pace takes instances to be read as often as their samples show, or as the source is set to, whichever is less often.
func (f *Feed) pace() pace {
	p := f.config.Params
	return pace{
		tick: p.Interval.Milliseconds(), reading: max(f.config.Interval, f.spacing.interval()).Milliseconds(),
		window: p.Window.Milliseconds(), staleAfter: p.StaleAfter.Milliseconds(),
	}
}

// cover returns the time from which on the samples make up the load (ms), or an *Unavailable. Instances that were not
// read as long as others get samples that the others vouch for.
func (c *coverage) cover(all []pipeline.Instance, p pace, now int64) (int64, error) {
	active := make([]*pipeline.Instance, 0, len(all))
	unread, first, earliest := 0, int64(0), now
	for i := range all {
		x := &all[i]
		if x.End != 0 {
			continue
		}
		active = append(active, x)
		if len(x.Samples) == 0 {
			unread++
			continue
		}
		seen := x.Samples[0].T
		earliest = min(earliest, seen)
		if seen > x.Start+p.tick+2*p.reading { // it was not read from its start on
			first = max(first, seen)
		}
	}
	switch {
	case len(active) == 0:
		*c = coverage{}
		return 0, unavailable(snapshot.NoReadyPods, "the target has no ready pod")
	case len(active) == unread:
		return 0, unavailable(snapshot.WaitingForSamples, "none of %d ready pods has been read yet", unread)
	case c.begun == 0:
		c.begun = now
	}
	if c.since == 0 {
		if unread > 0 && now-c.begun < max(coverWait.Milliseconds(), 2*p.reading) {
			return 0, unavailable(snapshot.WaitingForSamples, "%d of %d ready pods have not been read yet", unread, len(active))
		}
		if 2*unread > len(active) {
			return 0, unavailable(snapshot.PodsUnreadable, "%d of %d ready pods have not been read", unread, len(active))
		}
		c.since = max(first, earliest)
	}
	if left := c.since + max(warmUpTicks*p.tick, 2*p.reading) - now; left > 0 {
		return 0, unavailable(snapshot.WarmingUp, "all ready pods are read; a trend can be told in %s", (time.Duration(left) * time.Millisecond).Round(time.Second))
	}
	return c.since, c.vouch(active, p, now)
}

// vouch gives samples to instances that have not been read since they started or since the window did: the mean of those
// that were read throughout, at its beginning and now. Otherwise a pod that serves but cannot be read would count as
// idle. One that is read only late is taken to have been so before. Half of the fleet must be read.
func (c *coverage) vouch(active []*pipeline.Instance, p pace, now int64) error {
	firstTick := (max(c.since, now-p.window)/p.tick + 1) * p.tick
	var silent []*pipeline.Instance
	var first, last float64
	read, lost := 0, 0
	for _, x := range active {
		begin := max(x.Start, firstTick)
		n := len(x.Samples)
		seen := max(x.Start, c.begun)
		if n > 0 {
			seen = x.Samples[n-1].T
		}
		if now-seen > p.staleAfter {
			lost++
		}
		at := firstFrom(x.Samples, begin)
		if at == n {
			if x.Start <= firstTick || now-begin > 2*p.reading { // a newcomer is given time to be read
				silent = append(silent, x)
			}
			continue
		}
		if late := x.Samples[0].T - begin; at == 0 && (late > p.tick || x.Start <= firstTick) {
			x.Samples = slices.Concat([]pipeline.Sample{{T: begin - p.tick, V: x.Samples[0].V}}, x.Samples)
			n++
		}
		if x.Start <= firstTick {
			first += x.Samples[at].V
			last += x.Samples[n-1].V
			read++
		}
	}
	// Where nothing at all comes in any more, the age of the data says so better.
	if lost < len(active) && 2*lost > len(active) || 2*len(silent) > len(active) || len(silent) > 0 && read == 0 {
		return unavailable(snapshot.PodsUnreadable, "%d of %d ready pods cannot be read", max(lost, len(silent)), len(active))
	}
	for _, x := range silent {
		x.Samples = []pipeline.Sample{{T: firstTick - p.tick, V: first / float64(read)}, {T: now, V: last / float64(read)}}
	}
	return nil
}

func unavailable(reason snapshot.Reason, format string, args ...any) *snapshot.Unavailable {
	return &snapshot.Unavailable{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

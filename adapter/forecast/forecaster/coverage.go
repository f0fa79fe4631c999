package forecaster

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

const (
	// warmUpTicks is for how many sample intervals all pods must have been read before a forecast is served.
	warmUpTicks = 10
	// coverWait is the least time to wait for the first reading of a pod before forecasts go on without it.
	coverWait = 10 * time.Second
)

// coverage records since when every instance has been read, and substitutes samples for the others. A sum with
// some pods missing is no load: it would look like a sudden rise as they come in, and like a sudden fall as they stop.
type coverage struct {
	begun int64 // when the first sample was seen (ms), 0 = not yet
	since int64 // since when all instances are read (ms), 0 = not yet
}

// pace is the times that coverage depends on, in ms.
type pace struct {
	tick       int64 // Δt
	reading    int64 // how often an instance is read
	window     int64
	staleAfter int64
	// gap is the time for which samples do not add up to the load after all instances have been replaced.
	// With any method readings are of a while ago, and requests may have moved to the others before
	// the selector did.
	gap int64
}

// cover returns since when the samples add up to the load (ms), or an *Unavailable. Instances that
// were not read for as long as the others get samples from the mean of those.
func (c *coverage) cover(all []pipeline.Instance, p pace, now int64) (int64, error) {
	active := make([]*pipeline.Instance, 0, len(all))
	unread, first, earliest := 0, int64(0), now
	oldest, ended := now, int64(0) // the first start of the active ones, the last end of the others
	for i := range all {
		x := &all[i]
		if x.End != 0 {
			ended = max(ended, x.End)
			continue
		}
		oldest = min(oldest, x.Start)
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
	case ended > c.since && c.since > 0 && oldest >= ended: // all were replaced at one moment
		c.since = oldest + p.gap
	}
	if c.since == 0 {
		if unread > 0 && now-c.begun < max(coverWait.Milliseconds(), 2*p.reading) {
			return 0, unavailable(snapshot.WaitingForSamples, "%d of %d ready pods have not been read yet", unread,
				len(active))
		}
		if 2*unread > len(active) {
			return 0, unavailable(snapshot.PodsUnreadable, "%d of %d ready pods have not been read", unread,
				len(active))
		}
		c.since = max(first, earliest)
	}
	if left := c.since + max(warmUpTicks*p.tick, 2*p.reading) - now; left > 0 {
		in := (time.Duration(left) * time.Millisecond).Round(time.Second)
		return 0, unavailable(snapshot.WarmingUp, "all ready pods are read; a trend can be seen in %s", in)
	}
	return c.since, c.substitute(active, p, now)
}

// substitute gives samples to instances that have not been read since their start or the start of
// the window: the mean of the others, at its beginning and now. Otherwise an unreadable pod
// that serves would count as idle. An instance that was first read late gets its first value for
// the time before. Half of the instances must be read.
func (c *coverage) substitute(active []*pipeline.Instance, p pace, now int64) error {
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
		at := samples.Series(x.Samples).From(begin)
		once := n == 1 && now-seen > 2*p.reading // a value is known between two readings only
		if at == n || once {
			if x.Start <= firstTick || now-begin > 2*p.reading { // a new instance has some time to be read
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
	// If no samples arrive at all, their age is the better reason.
	if lost < len(active) && 2*lost > len(active) || 2*len(silent) > len(active) || len(silent) > 0 && read == 0 {
		return unavailable(snapshot.PodsUnreadable, "%d of %d ready pods cannot be read", max(lost, len(silent)),
			len(active))
	}
	for _, x := range silent {
		x.Samples = []pipeline.Sample{{T: firstTick - p.tick, V: first / float64(read)},
			{T: now, V: last / float64(read)}}
	}
	return nil
}

func unavailable(reason snapshot.Reason, format string, args ...any) *snapshot.Unavailable {
	return &snapshot.Unavailable{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

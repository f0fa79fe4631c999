package forecaster

import (
	"maps"
	"time"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// clock notices that the clock of the process was set, and keeps the times that it showed before from
// outliving that.
type clock struct {
	read time.Time // the newest reading, zero before the first
	// moved is when instances started (ms) whose recorded times lie ahead of the clock; Never: they ended.
	moved map[string]int64
}

// step returns how far the clock was set since the last reading: 0 unless it is more than a tolerance.
func (c *clock) step(now time.Time, tolerance time.Duration) time.Duration {
	before := c.read
	c.read = now
	if before.IsZero() {
		return 0
	}
	if by := source.ClockStep(before, now); by.Abs() > tolerance {
		return by
	}
	return 0
}

// set notes which instances have recorded times that lie ahead of a clock that was set back. Those are
// moved with it.
func (c *clock) set(instances []podtracker.Instance, by time.Duration, now time.Time) {
	present := now.UnixMilli() // compared by the time of day: their elapsed times stay
	for i := range instances {
		x := &instances[i]
		started, known := c.moved[x.ID]
		if !known {
			started = x.Start.UnixMilli()
		}
		switch {
		case started == pipeline.Never:
			continue
		case !x.End.IsZero() && x.End.UnixMilli() > present:
			started = pipeline.Never
		case known || started > present:
			started = min(present, started+by.Milliseconds())
		default:
			continue
		}
		if c.moved == nil {
			c.moved = map[string]int64{}
		}
		c.moved[x.ID] = started
	}
}

// start returns when an instance started (ms). It returns false for one that ended before the clock was
// set back.
func (c *clock) start(x *podtracker.Instance) (ms int64, counts bool) {
	if ms, ok := c.moved[x.ID]; ok {
		return ms, ms != pipeline.Never
	}
	return x.Start.UnixMilli(), true
}

// retainOnly drops all instances but those present.
func (c *clock) retainOnly(present map[string]bool) {
	maps.DeleteFunc(c.moved, func(id string, _ int64) bool { return !present[id] })
}

// notAfter returns a time, or now if that is earlier.
func notAfter(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}

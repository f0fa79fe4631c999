package schedule

import (
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// Entry is a window in which other bounds hold.
type Entry struct {
	Name      string
	Window    Window
	Min, Max  *int    // nil: as without it
	Lateness  float64 // 0: as without it
	Unlearned bool    // what a load is in the window is not learned
}

// Calendar is the schedules of a PredictedMetric. It keeps the windows that come next, and nothing
// else. It is not safe for concurrent use. A nil one has no schedules.
type Calendar struct {
	usual   pipeline.Bounds
	entries []Entry

	asked time.Time // the time that spans are of
	spans []span    // the next ones of the entries
}

// New returns a calendar, given the bounds that hold outside of all windows.
func New(usual pipeline.Bounds, entries []Entry) *Calendar {
	if len(entries) == 0 {
		return nil
	}
	return &Calendar{usual: usual, entries: entries, spans: make([]span, len(entries))}
}

// MaxAhead is how far ahead of its window a bound takes effect at most.
const MaxAhead = joinedFor

// At returns the bounds that hold at a time, nil without schedules, and the names of the entries
// that they are of.
//
// Pods for the beginning of a window have to be ordered ahead of it, and pods for its end must not
// be. So of the bounds from now until a forecast is of, some time ahead, the largest minimum and
// the largest maximum hold, and the smallest lateness; but the maximum of a window that is active
// holds to its end. The farther bounds are the same for a forecast that reaches farther. Of windows
// that overlap, the largest minimum, the smallest maximum and the smallest lateness count. Where
// bounds cross the minimum wins: there must not be too few pods. Of a window that comes more than
// once in the time ahead only the first is looked at.
func (c *Calendar) At(now time.Time, ahead, farther time.Duration) (*pipeline.Bounds, []string) {
	if c == nil {
		return nil, nil
	}
	c.advance(now)
	out := c.largest(now, ahead)
	if farther > ahead {
		far := c.largest(now, farther)
		out.NodeMin, out.NodeMax = far.Min, far.Max
	} else {
		out.NodeMin, out.NodeMax = out.Min, out.Max
	}
	var names []string
	until := now.Add(min(ahead, MaxAhead))
	for i := range c.spans {
		if s := &c.spans[i]; s.end.After(now) && !s.start.After(until) {
			names = append(names, c.entries[i].Name)
		}
	}
	return &out, names
}

// advance has spans be those that have not ended.
func (c *Calendar) advance(now time.Time) {
	back := now.Before(c.asked)
	for i := range c.entries {
		s := &c.spans[i]
		if c.asked.IsZero() || back || !s.start.IsZero() && !s.end.After(now) {
			*s = c.entries[i].Window.next(now)
		}
	}
	c.asked = now
}

// largest returns the largest bounds from a time until some time ahead.
func (c *Calendar) largest(now time.Time, ahead time.Duration) pipeline.Bounds {
	until := now.Add(min(ahead, MaxAhead))
	out, limited := c.during(now)
	for i := range c.spans {
		for _, t := range [...]time.Time{c.spans[i].start, c.spans[i].end} {
			if !t.After(now) || t.After(until) {
				continue
			}
			then, _ := c.during(t)
			out.Min, out.Lateness = max(out.Min, then.Min), min(out.Lateness, then.Lateness)
			if !limited {
				out.Max = max(out.Max, then.Max)
			}
		}
	}
	out.Max = max(out.Max, out.Min)
	return out
}

// during returns the bounds of the windows that a time is in, and whether one of them has a maximum.
func (c *Calendar) during(t time.Time) (out pipeline.Bounds, limited bool) {
	out = c.usual
	raised, careful := false, false
	for i := range c.entries {
		e := &c.entries[i]
		if !c.spans[i].has(t) {
			continue
		}
		if e.Min != nil && (!raised || *e.Min > out.Min) {
			out.Min, raised = *e.Min, true
		}
		if e.Max != nil && (!limited || *e.Max < out.Max) {
			out.Max, limited = *e.Max, true
		}
		if e.Lateness > 0 && (!careful || e.Lateness < out.Lateness) {
			out.Lateness, careful = e.Lateness, true
		}
	}
	return out, limited
}

// Unlearned tells whether what the load is at a time (ms) is not learned.
func (c *Calendar) Unlearned(ms int64) bool {
	return c != nil && slices.ContainsFunc(c.entries,
		func(e Entry) bool { return e.Unlearned && e.Window.Active(time.UnixMilli(ms)) })
}

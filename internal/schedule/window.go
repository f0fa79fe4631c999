// Package schedule answers which windows of time are active: those that begin at the times of a
// cron schedule and last for a duration, and those with a start and an end; and which bounds a
// PredictedMetric has in them. Its answers depend on the time that it is asked for alone.
package schedule

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/foresail/foresail/pipeline"
)

// Window is a stretch of time, or one that recurs. The zero value is never active. Its end is not in it.
type Window struct {
	start, end time.Time // of one that does not recur

	cron     *cron.SpecSchedule // of wall clock times, which it takes to be UTC; nil: it does not recur
	zone     *time.Location
	duration time.Duration
}

// Once returns a window that does not recur.
func Once(start, end time.Time) Window { return Window{start: start, end: end} }

// Recurring returns a window that begins at each time of a cron schedule, by the wall clock of a
// time zone (IANA; "" is UTC), and lasts for a duration. It begins at the first moment at which the
// clock shows such a time or a later one: a time that clocks skip is that at which they are set
// forward, and one that they show twice is the first of both. The error is a *pipeline.FieldError
// of schedule, timeZone or duration.
func Recurring(schedule, zone string, duration time.Duration) (Window, error) {
	times, err := parse(schedule)
	if err != nil {
		return Window{}, err
	}
	location, err := time.LoadLocation(zone)
	if err != nil || zone == time.Local.String() { // that of this process is nobody's choice
		return Window{}, &pipeline.FieldError{Field: "timeZone", Value: fmt.Sprintf("%q", zone),
			Accept: "a name of the IANA time zone database, such as Europe/Berlin or UTC"}
	}
	if duration <= 0 {
		return Window{}, &pipeline.FieldError{Field: "duration", Value: duration,
			Accept: "a duration above 0s, as there is a schedule"}
	}
	return Window{cron: times, zone: location, duration: duration}, nil
}

// Active tells whether a time is in the window.
func (w *Window) Active(t time.Time) bool {
	if w.cron == nil {
		return !t.Before(w.start) && t.Before(w.end)
	}
	_, start := w.first(t)
	return !start.IsZero() && !start.After(t)
}

// first returns the first start of a window that has not ended at a time, by the wall clock and as
// a moment; zero times without one.
func (w *Window) first(t time.Time) (wall, start time.Time) {
	begun := t.Add(-w.duration) // by then it has ended
	for wall = onWall(begun.In(w.zone)); ; {
		wall = w.cron.Next(wall)
		if wall.IsZero() {
			return wall, wall
		}
		if start = w.moment(wall); start.After(begun) {
			return wall, start
		}
	}
}

// joinedFor is for how long windows that follow each other without a gap are joined.
const joinedFor = 24 * time.Hour

// span is a stretch of time, without its end.
type span struct{ start, end time.Time }

func (s span) has(t time.Time) bool { return !t.Before(s.start) && t.Before(s.end) }

// next returns the first stretch of the window that has not ended at a time. Windows that follow
// each other without a gap are one, which ends no earlier than joinedFor later. The zero value is
// none.
func (w *Window) next(t time.Time) span {
	if w.cron == nil {
		if !t.Before(w.end) {
			return span{}
		}
		return span{w.start, w.end}
	}
	wall, start := w.first(t)
	if start.IsZero() {
		return span{}
	}
	s := span{start, start.Add(w.duration)}
	for s.end.Sub(t) < joinedFor {
		wall = w.cron.Next(wall)
		following := w.moment(wall)
		if wall.IsZero() || following.After(s.end) {
			break
		}
		s.end = following.Add(w.duration)
	}
	return s
}

// onWall returns what the wall clock shows at a time, as if it were one in UTC.
func onWall(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// moment returns the first moment at which the wall clock shows a time or a later one.
func (w *Window) moment(wall time.Time) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, w.zone)
	changed, changes := t.ZoneBounds() // when clocks were set before that, and when they will be
	switch shown := onWall(t); {
	case shown.After(wall): // it is skipped
		return changed
	case shown.Before(wall):
		return changes
	case changed.IsZero():
		return t
	}
	_, offset := changed.Add(-time.Second).Zone()
	if earlier := wall.Add(-time.Duration(offset) * time.Second); earlier.Before(changed) {
		return earlier.In(w.zone)
	}
	return t
}

// parse returns a schedule that has times.
func parse(text string) (*cron.SpecSchedule, error) {
	wrong := func(accept string) error {
		return &pipeline.FieldError{Field: "schedule", Value: fmt.Sprintf("%q", text), Accept: accept}
	}
	// The zone stands first for the library as well, which panics at a zone that nothing follows.
	parsed, err := cron.ParseStandard("TZ=UTC " + text)
	if err != nil {
		return nil, wrong("a cron schedule: " + err.Error())
	}
	schedule, ok := parsed.(*cron.SpecSchedule)
	if !ok { // @every
		return nil, wrong("a cron schedule of five fields, or a macro such as @daily")
	}
	if !comes(schedule) {
		return nil, wrong("a cron schedule with times that come, unlike 31 February")
	}
	return schedule, nil
}

// comes reports whether a schedule has times. The library looks ahead for five years; these begin
// with a leap year, so that they have every date.
func comes(s *cron.SpecSchedule) bool {
	if s.Minute == 0 || s.Hour == 0 { // lone commas: it would look at every minute
		return false
	}
	return !s.Next(time.Date(2023, time.December, 31, 23, 59, 59, 0, time.UTC)).IsZero()
}

package params

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
)

const (
	// mostSchedules, and the durations between these, are what the CRD accepts.
	mostSchedules                 = 16
	shortestWindow, longestWindow = time.Minute, 31 * 24 * time.Hour
)

// Schedules converts the schedules of a spec, given the parameters that FromSpec returned for it: these hold outside of all windows.
// It is nil without schedules. The error joins a *pipeline.FieldError for each problem; FromSpec returns it as well.
func Schedules(spec v1alpha1.PredictedMetricSpec, p *pipeline.Params) (*schedule.Calendar, error) {
	var errs []error
	if n := len(spec.Schedules); n > mostSchedules {
		return nil, &pipeline.FieldError{Field: "spec.schedules", Value: n, Accept: fmt.Sprintf("at most %d", mostSchedules)}
	}
	var entries []schedule.Entry
	names := map[string]bool{}
	for i := range spec.Schedules {
		of := scheduleOf{Schedule: &spec.Schedules[i], path: fmt.Sprintf("spec.schedules[%d]", i)}
		of.require(!names[of.Name], "name", of.Name, "unlike those of the other schedules")
		names[of.Name] = true
		entries = append(entries, of.entry(p))
		errs = append(errs, of.errs...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return schedule.New(pipeline.Bounds{Min: p.Min, Max: p.Max, Lateness: p.Lateness}, entries), nil
}

// scheduleOf collects what is wrong with a schedule.
type scheduleOf struct {
	*v1alpha1.Schedule
	path string
	errs []error
}

func (s *scheduleOf) require(ok bool, field string, value any, accept string) {
	if !ok {
		s.errs = append(s.errs, &pipeline.FieldError{Field: s.path + "." + field, Value: value, Accept: accept})
	}
}

// dnsLabel is what a name has to be.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (s *scheduleOf) entry(p *pipeline.Params) schedule.Entry {
	s.require(dnsLabel.MatchString(s.Name), "name", fmt.Sprintf("%q", s.Name), "lower case letters, digits and hyphens, such as black-friday")
	e := schedule.Entry{Name: s.Name, Window: s.window(), Unlearned: s.Learning == v1alpha1.LearningDisabled}
	if s.MinReplicas == nil && s.MaxReplicas == nil && s.Lateness == "" && s.Learning == "" {
		s.errs = append(s.errs, &pipeline.FieldError{Field: s.path, Value: "without effect", Accept: "given at least one of minReplicas, maxReplicas, lateness and learning"})
	}
	least, most := p.Min, p.Max
	if s.MinReplicas != nil {
		least = int(*s.MinReplicas)
		e.Min = &least
		s.require(least >= 1 || least == 0 && p.Whole, "minReplicas", least, "at least 1, or 0 if the source measures the whole target")
	}
	if s.MaxReplicas != nil {
		most = int(*s.MaxReplicas)
		e.Max = &most
		s.require(most >= 1, "maxReplicas", most, "at least 1")
	}
	switch {
	case least <= most:
	case s.MaxReplicas != nil:
		s.require(false, "maxReplicas", most, fmt.Sprintf("at least minReplicas, here or in the spec (%d)", least))
	case s.MinReplicas != nil:
		s.require(false, "minReplicas", least, fmt.Sprintf("at most maxReplicas of the spec (%d), unless maxReplicas is given here too", most))
	}
	e.Lateness = s.lateness(p)
	s.require(s.Learning == "" || s.Learning == v1alpha1.LearningDisabled, "learning", string(s.Learning), "Disabled, or absent")
	s.require(s.Learning == "" || p.Method == pipeline.Adaptive, "learning", string(s.Learning), "absent with holt")
	return e
}

func (s *scheduleOf) lateness(p *pipeline.Params) float64 {
	share := lateness(s.Lateness)
	switch {
	case s.Lateness == "":
	case p.Method != pipeline.Adaptive:
		s.require(false, "lateness", s.Lateness, "absent with holt")
	default:
		s.require(share > 0, "lateness", s.Lateness, "a percentage above 0% and up to 50%, such as 0.1%")
	}
	return share
}

// window returns the window, or notes what is wrong with it.
func (s *scheduleOf) window() schedule.Window {
	recurs, once := s.Schedule.Schedule != "" || s.Duration != nil, s.Start != nil || s.End != nil
	switch {
	case recurs == once:
		s.errs = append(s.errs, &pipeline.FieldError{Field: s.path, Value: map[bool]string{true: "both kinds of window", false: "no window"}[recurs], Accept: "given either schedule and duration, or start and end"})
	case recurs:
		return s.recurring()
	case s.Start == nil:
		s.require(false, "start", "absent", "given with end")
	case s.End == nil:
		s.require(false, "end", "absent", "given with start")
	default:
		s.require(s.TimeZone == "", "timeZone", s.TimeZone, "absent without schedule: start and end have an offset of their own")
		s.require(s.Start.Before(s.End), "end", s.End.Format(time.RFC3339), "after start ("+s.Start.Format(time.RFC3339)+")")
		return schedule.Once(s.Start.Time, s.End.Time)
	}
	return schedule.Window{}
}

func (s *scheduleOf) recurring() schedule.Window {
	if s.Duration == nil {
		s.require(false, "duration", "absent", "given with schedule")
		return schedule.Window{}
	}
	d := s.Duration.Duration
	if d < shortestWindow || d > longestWindow || d%time.Minute != 0 {
		s.require(false, "duration", d, "hours and minutes, from 1m to 744h, such as 10h")
		return schedule.Window{}
	}
	w, err := schedule.Recurring(s.Schedule.Schedule, s.TimeZone, d)
	if f, ok := errors.AsType[*pipeline.FieldError](err); ok {
		s.require(false, f.Field, f.Value, f.Accept)
	}
	return w
}

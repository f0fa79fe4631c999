package params

import (
	"errors"
	"fmt"
	"time"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
)

// Schedules converts the schedules of a spec, given the parameters that FromSpec returned for it: these hold outside of
// all windows. It is nil without schedules. The error joins a *pipeline.FieldError for each cron schedule and each time
// zone that is unknown, which no rule of the API can know; FromSpec returns it as well.
func Schedules(spec v1alpha1.PredictedMetricSpec, p *pipeline.Params) (*schedule.Calendar, error) {
	var (
		errs    []error
		entries []schedule.Entry
	)
	for i := range spec.Schedules {
		s := &spec.Schedules[i]
		window, err := scheduleWindow(s)
		if f, ok := errors.AsType[*pipeline.FieldError](err); ok {
			f.Field = fmt.Sprintf("spec.schedules[%d].%s", i, f.Field)
		}
		errs = append(errs, err)
		entries = append(entries, schedule.Entry{
			Name: s.Name, Window: window, Min: limit(s.MinReplicas), Max: limit(s.MaxReplicas),
			Lateness: shareOf(s.Lateness), Unlearned: s.Learning == v1alpha1.LearningDisabled,
		})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return schedule.New(pipeline.Bounds{Min: p.Min, Max: p.Max, Lateness: p.Lateness}, entries), nil
}

// scheduleWindow returns the window of a schedule, which has either start and end, or schedule and duration.
func scheduleWindow(s *v1alpha1.Schedule) (schedule.Window, error) {
	if s.Start != nil && s.End != nil {
		return schedule.Once(s.Start.Time, s.End.Time), nil
	}
	var duration time.Duration
	if s.Duration != nil {
		duration = s.Duration.Duration
	}
	return schedule.Recurring(s.Schedule, s.TimeZone, duration)
}

func limit(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}

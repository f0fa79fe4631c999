package replay

import (
	"iter"
	"time"

	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
)

// Options configure a replay.
type Options struct {
	Params pipeline.Params
	// Cooldowns holds decisions back as the controller would, counting from the decisions of
	// earlier runs. Without, each run's own decision is given.
	Cooldowns bool
	// Learn has runs learn from the loads that runs before them have seen, as live ones do.
	// Without, each depends on its window alone.
	Learn bool
	// Schedules have the bounds of each time, which is one since 1970 then, and what is not
	// learned; nil: there are none.
	Schedules *schedule.Calendar
}

// Result is the outcome of one run.
type Result struct {
	Now      int64
	Err      error // why there is no forecast; then the rest means nothing
	Forecast pipeline.Forecast
	Decision pipeline.Decision // Forecast.Decision, after cooldowns if Options.Cooldowns is set
}

// Replay evaluates the runs in order of time. It fails only on parameters that break a
// precondition, with every one of them. The sequence may be gone through more than once, but not
// concurrently.
func (r *Recording) Replay(o Options) (iter.Seq[Result], error) {
	p, err := pipeline.New(o.Params)
	if err != nil {
		return nil, err
	}
	return func(yield func(Result) bool) {
		fleet := newFleet(r, o.Params)
		history := pipeline.ScalingTimes{LastUp: pipeline.Never, LastDown: pipeline.Never}
		var m pipeline.Memory
		past := pipeline.NewLearned(&o.Params)
		for _, now := range r.runs {
			fleet.advance(now)
			result, in := Result{Now: now}, fleet.input(now)
			in.Bounds, _ = o.Schedules.At(time.UnixMilli(now), o.Params.HorizonFor(0), 0)
			if o.Learn {
				in.Learned = past
			}
			result.Forecast, result.Err = p.RunIn(&m, in)
			if o.Learn && result.Err == nil {
				past.Learn(m.Loads(), o.Params.LearnOptions(), o.Schedules.Unlearned)
			}
			result.Decision = result.Forecast.Decision
			if o.Cooldowns && result.Err == nil {
				history.NewestStart = fleet.newestStart(now)
				result.Decision = o.Params.Cooldown.Apply(result.Decision, result.Forecast.Target, now, history)
				note(&history, result.Decision.Action, now)
			}
			if !yield(result) {
				return
			}
		}
	}, nil
}

// note enters a decision into the history that later ones are held against.
func note(h *pipeline.ScalingTimes, a pipeline.Action, now int64) {
	switch a {
	case pipeline.ScaleUp:
		h.LastUp = now
	case pipeline.ScaleDown:
		h.LastDown = now
	}
}

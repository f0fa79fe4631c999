package pipeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// Paper, section 9.3: the four cooldowns, each from its own clock.
func TestCooldowns(t *testing.T) {
	const now, never = int64(1_000_000), pipeline.Never
	ago := func(d time.Duration) int64 { return now - d.Milliseconds() }
	all := pipeline.Cooldown{UpAfterUp: 5 * time.Second, UpAfterDown: 7 * time.Second, DownAfterUp: 3 * time.Minute, DownAfterDown: time.Minute}
	require.Equal(t, pipeline.Cooldown{UpAfterUp: 5 * time.Second, UpAfterDown: 5 * time.Second, DownAfterUp: 3 * time.Minute, DownAfterDown: time.Minute},
		pipeline.HoltParams().Cooldown)
	up := pipeline.Decision{Direction: pipeline.Rising, Desired: 6, Action: pipeline.ScaleUp, Reason: pipeline.AboveThreshold}
	down := pipeline.Decision{Direction: pipeline.Falling, Desired: 2, Action: pipeline.ScaleDown, Reason: pipeline.Headroom}
	hold := pipeline.Decision{Direction: pipeline.Steady, Desired: 4, Action: pipeline.Hold, Reason: pipeline.NoNeed}
	for name, c := range map[string]struct {
		cooldown pipeline.Cooldown
		decision pipeline.Decision
		history  pipeline.History
		blocked  bool
	}{
		"nothing has happened, up":       {all, up, pipeline.History{LastUp: never, LastDown: never, NewestStart: never}, false},
		"nothing has happened, down":     {all, down, pipeline.History{LastUp: never, LastDown: never, NewestStart: never}, false},
		"up just after up":               {all, up, pipeline.History{LastUp: ago(5*time.Second) + 1, LastDown: never, NewestStart: never}, true},
		"up after up":                    {all, up, pipeline.History{LastUp: ago(5 * time.Second), LastDown: never, NewestStart: never}, false},
		"up just after down":             {all, up, pipeline.History{LastUp: never, LastDown: ago(7*time.Second) + 1, NewestStart: never}, true},
		"up after down":                  {all, up, pipeline.History{LastUp: never, LastDown: ago(7 * time.Second), NewestStart: never}, false},
		"up just after a start":          {all, up, pipeline.History{LastUp: never, LastDown: never, NewestStart: now}, false},
		"down just after a start":        {all, down, pipeline.History{LastUp: never, LastDown: never, NewestStart: ago(3*time.Minute) + 1}, true},
		"down after a start":             {all, down, pipeline.History{LastUp: never, LastDown: never, NewestStart: ago(3 * time.Minute)}, false},
		"down just after deciding up":    {all, down, pipeline.History{LastUp: now, LastDown: never, NewestStart: never}, false}, // the clock is the start's
		"down just after down":           {all, down, pipeline.History{LastUp: never, LastDown: ago(time.Minute) + 1, NewestStart: never}, true},
		"down after down":                {all, down, pipeline.History{LastUp: never, LastDown: ago(time.Minute), NewestStart: never}, false},
		"hold":                           {all, hold, pipeline.History{LastUp: now, LastDown: now, NewestStart: now}, false},
		"by a clock that is ahead":       {all, up, pipeline.History{LastUp: now + 1000, LastDown: never, NewestStart: never}, true},
		"all off, up":                    {pipeline.Cooldown{}, up, pipeline.History{LastUp: now, LastDown: now, NewestStart: now}, false},
		"all off, down":                  {pipeline.Cooldown{}, down, pipeline.History{LastUp: now, LastDown: now, NewestStart: now}, false},
		"all off, a clock that is ahead": {pipeline.Cooldown{}, down, pipeline.History{LastUp: now, LastDown: now + 1000, NewestStart: now + 1000}, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.decision
			if c.blocked {
				want = pipeline.Decision{Direction: want.Direction, Desired: 4, Action: pipeline.Hold, Reason: pipeline.CoolingDown}
			}
			require.Equal(t, want, c.cooldown.Apply(c.decision, 4, now, c.history))
		})
	}
}

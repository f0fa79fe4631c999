package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/series"
)

// Paper, section 9.3: the four cooldowns, each from its own clock.
func TestCooldowns(t *testing.T) {
	const now, never = int64(1_000_000), series.Never
	ago := func(d time.Duration) int64 { return now - d.Milliseconds() }
	all := decide.Cooldown{UpAfterUp: 5 * time.Second, UpAfterDown: 7 * time.Second,
		DownAfterUp: 3 * time.Minute, DownAfterDown: time.Minute}
	up := decide.Decision{Direction: decide.Rising, Desired: 6, Action: decide.ScaleUp, Reason: decide.AboveThreshold}
	down := decide.Decision{Direction: decide.Falling, Desired: 2, Action: decide.ScaleDown, Reason: decide.Headroom}
	hold := decide.Decision{Direction: decide.Steady, Desired: 4, Action: decide.Hold, Reason: decide.NoNeed}
	for name, c := range map[string]struct {
		cooldown decide.Cooldown
		decision decide.Decision
		history  decide.ScalingTimes
		blocked  bool
	}{
		"nothing has happened, up": {all, up,
			decide.ScalingTimes{LastUp: never, LastDown: never, NewestStart: never}, false},
		"nothing has happened, down": {all, down,
			decide.ScalingTimes{LastUp: never, LastDown: never, NewestStart: never}, false},
		"up just after up": {all, up,
			decide.ScalingTimes{LastUp: ago(5*time.Second) + 1, LastDown: never, NewestStart: never}, true},
		"up after up": {all, up,
			decide.ScalingTimes{LastUp: ago(5 * time.Second), LastDown: never, NewestStart: never}, false},
		"up just after down": {all, up,
			decide.ScalingTimes{LastUp: never, LastDown: ago(7*time.Second) + 1, NewestStart: never}, true},
		"up after down": {all, up,
			decide.ScalingTimes{LastUp: never, LastDown: ago(7 * time.Second), NewestStart: never}, false},
		"up just after a start": {all, up,
			decide.ScalingTimes{LastUp: never, LastDown: never, NewestStart: now}, false},
		"down just after a start": {all, down,
			decide.ScalingTimes{LastUp: never, LastDown: never, NewestStart: ago(3*time.Minute) + 1}, true},
		"down after a start": {all, down,
			decide.ScalingTimes{LastUp: never, LastDown: never, NewestStart: ago(3 * time.Minute)}, false},
		// the clock is the start's
		"down just after deciding up": {all, down,
			decide.ScalingTimes{LastUp: now, LastDown: never, NewestStart: never}, false},
		"down just after down": {all, down,
			decide.ScalingTimes{LastUp: never, LastDown: ago(time.Minute) + 1, NewestStart: never}, true},
		"down after down": {all, down,
			decide.ScalingTimes{LastUp: never, LastDown: ago(time.Minute), NewestStart: never}, false},
		"hold": {all, hold,
			decide.ScalingTimes{LastUp: now, LastDown: now, NewestStart: now}, false},
		"by a clock that is ahead": {all, up,
			decide.ScalingTimes{LastUp: now + 1000, LastDown: never, NewestStart: never}, true},
		"all off, up": {decide.Cooldown{}, up,
			decide.ScalingTimes{LastUp: now, LastDown: now, NewestStart: now}, false},
		"all off, down": {decide.Cooldown{}, down,
			decide.ScalingTimes{LastUp: now, LastDown: now, NewestStart: now}, false},
		"all off, a clock that is ahead": {decide.Cooldown{}, down,
			decide.ScalingTimes{LastUp: now, LastDown: now + 1000, NewestStart: now + 1000}, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.decision
			if c.blocked {
				want = decide.Decision{Direction: want.Direction, Desired: 4, Action: decide.Hold, Reason: decide.CoolingDown}
			}
			require.Equal(t, want, c.cooldown.Apply(c.decision, 4, now, c.history))
		})
	}
}

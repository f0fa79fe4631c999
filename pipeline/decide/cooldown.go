package decide

import (
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// Cooldown holds the minimum time between two changes of the target, by the direction of the later and of the
// earlier one (paper, section 9.3). Zero disables a cooldown.
type Cooldown struct {
	UpAfterUp, UpAfterDown, DownAfterUp, DownAfterDown time.Duration
}

// ScalingTimes holds the times from which cooldowns are counted; each is in ms, or Never.
type ScalingTimes struct {
	LastUp, LastDown int64 // when the target last rose and fell
	NewestStart      int64 // when the newest instance started; scale-down after scale-up is counted from here
}

// Apply returns the decision for a target count at the time now (ms), or Hold if a cooldown has not passed.
func (c Cooldown) Apply(d Decision, target int, now int64, h ScalingTimes) Decision {
	blocked := false
	switch d.Action {
	case ScaleUp:
		blocked = Within(now, h.LastUp, c.UpAfterUp) || Within(now, h.LastDown, c.UpAfterDown)
	case ScaleDown:
		blocked = Within(now, h.NewestStart, c.DownAfterUp) || Within(now, h.LastDown, c.DownAfterDown)
	}
	if blocked {
		d.Desired, d.Action, d.Reason = target, Hold, CoolingDown
	}
	return d
}

// Within reports whether less than d has passed between since and now. Because clocks disagree, a time in the
// future counts as now. It is always false for a d of zero.
func Within(now, since int64, d time.Duration) bool {
	return d > 0 && since != series.Never && float64(now)-float64(since) < series.Millis(d)
}

package plan

import (
	"slices"
	"time"
)

// A time in the future was written by a clock that was ahead, or that has been set back since. The
// real time is unknown, so it counts as now: nothing happens early. The owner of the state replaces
// it by now, which ends the wait.

const (
	// firstBackoff is the wait after one failed scale-up; each further failure doubles it.
	firstBackoff = time.Minute
	// urgentBackoff is the longest wait of a pool that has fewer workers than it needs.
	urgentBackoff = 5 * time.Minute
	// maxGap is the longest time between two decisions for a state to count as having lasted from one
	// to the other. A clock that was set forward looks the same.
	maxGap = 5 * time.Minute
)

// coolsUp returns the remaining cooldown of scale-ups. It begins with the last verified completion
// of either direction. Replacements of outdated workers do not change the number of workers, so
// launches do not wait for them.
func coolsUp(c *census) time.Duration {
	return left(latest(c.Record.LastUp, c.Record.LastDown), c.Pool.CooldownUp, c.Now)
}

// coolsDown returns the remaining cooldown of scale-downs. Replacements begin it as well.
func coolsDown(c *census) time.Duration {
	return left(latest(c.Record.LastUp, c.Record.LastDown, c.Record.LastSwap), c.Pool.CooldownDown, c.Now)
}

func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// backsOffFor returns the remaining wait after consecutive failed launches: 1m, 2m, 4m and so on.
func backsOffFor(c *census, urgent bool) time.Duration {
	if c.Record.Failures <= 0 {
		return 0
	}
	wait := min(firstBackoff, c.Pool.MaxFailureBackoff)
	for i := 1; i < c.Record.Failures && wait < c.Pool.MaxFailureBackoff; i++ {
		wait = min(2*wait, c.Pool.MaxFailureBackoff)
	}
	if urgent {
		wait = min(wait, urgentBackoff)
	}
	return left(c.Record.FailedAt, wait, c.Now)
}

// left returns the rest of a duration that began at since. A time in the future counts as now.
func left(since time.Time, whole time.Duration, now time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return whole - max(0, now.Sub(since))
}

// lasting returns the time since which something has held, zero if it does not hold. since is the
// recorded time. A gap between decisions restarts it.
func lasting(c *census, since time.Time, holds bool) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case since.IsZero(), since.After(c.Now), decisionGap(c):
		return c.Now
	}
	return since
}

// decisionGap reports whether the last decision is too long ago to conclude that its observations have
// held since.
func decisionGap(c *census) bool {
	return !c.DecidedAt.IsZero() && c.Now.Sub(c.DecidedAt) > maxGap
}

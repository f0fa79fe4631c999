package plan

import (
	"slices"
	"time"
)

// A time in the future was written by a clock that has been set back since, or that is ahead. The
// real time is not known, so it counts as now: nothing happens early. Whoever keeps the state ends
// the wait by writing now in its place.

const (
	// firstBackoff is what a pool waits after one failed scale-up; each further one doubles it.
	firstBackoff = time.Minute
	// urgentBackoff is the most that a pool waits which has fewer workers than it needs, whatever
	// has failed.
	urgentBackoff = 5 * time.Minute
	// maxGap is how far two decisions may be apart for a state to count as having lasted between
	// them. A clock that is set forward looks the same.
	maxGap = 5 * time.Minute
)

// coolsUp returns the rest of the cooldown of scale-ups, which begins with the last verified
// completion of either direction. Replacements of outdated workers leave their number as it is: a
// launch does not wait for them.
func coolsUp(c *census) time.Duration {
	return left(latest(c.Record.LastUp, c.Record.LastDown), c.Pool.CooldownUp, c.Now)
}

// coolsDown returns the rest of the cooldown of scale-downs, which replacements begin as well.
func coolsDown(c *census) time.Duration {
	return left(latest(c.Record.LastUp, c.Record.LastDown, c.Record.LastSwap), c.Pool.CooldownDown, c.Now)
}

func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// backsOffFor returns how long launches still wait after failures in a row: 1m, 2m, 4m and so on
// after the last one.
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

// left returns the rest of a duration that began at since; a time in the future counts as now.
func left(since time.Time, whole time.Duration, now time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return whole - max(0, now.Sub(since))
}

// lasting returns since when something has held, zero if it does not hold. since is the time that
// is remembered. While no decision was made it did not hold.
func lasting(c *census, since time.Time, holds bool) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case since.IsZero(), since.After(c.Now), unseen(c):
		return c.Now
	}
	return since
}

// unseen reports whether the last decision is so long ago that what held then may not have held
// since.
func unseen(c *census) bool {
	return !c.DecidedAt.IsZero() && c.Now.Sub(c.DecidedAt) > maxGap
}

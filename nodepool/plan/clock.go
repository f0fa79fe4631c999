package plan

import (
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
)

// A time in the future was written by a clock that has been set back since, or that is ahead. When it really was is not
// known, so it counts as now: nothing happens early. Whoever keeps the state ends the wait by writing now in its place.

const (
	// firstBackoff is what a pool waits after one failed scale-up; each further one doubles it.
	firstBackoff = time.Minute
	// urgentBackoff is the most that a pool waits which has fewer workers than it needs, whatever has failed.
	urgentBackoff = 5 * time.Minute
	// RefusedFor is how long after it may be tried again an offer counts as refused: longer than it takes until it
	// has been.
	RefusedFor = 5 * time.Minute
	// idleGap is how long nobody may have looked for a pool still to have been idle all the time. A clock that is set
	// forward looks the same.
	idleGap = 5 * time.Minute
)

// coolsUp is how much is left of the cooldown of scale-ups. It is counted from the last verified completion of either direction
// (seeds 002 and 003: now − lastScaleEpoch ≥ COOLDOWN_x_SEC). Replacements of outdated workers leave their number as it is: what
// is needed does not wait for them.
func (v *view) coolsUp() time.Duration {
	return left(latest(v.State.LastUp, v.State.LastDown), v.Pool.CooldownUp, v.Now)
}

// coolsDown is how much is left of the cooldown of scale-downs, which replacements begin as well.
func (v *view) coolsDown() time.Duration {
	return left(latest(v.State.LastUp, v.State.LastDown, v.State.LastSwap), v.Pool.CooldownDown, v.Now)
}

func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// backsOffFor is how long launches wait after some in a row of which nothing joined: 1m, 2m, 4m and so on.
func (v *view) backsOffFor(urgent bool) time.Duration {
	if v.State.Failures <= 0 {
		return 0
	}
	wait := min(firstBackoff, v.Pool.MaxFailureBackoff)
	for i := 1; i < v.State.Failures && wait < v.Pool.MaxFailureBackoff; i++ {
		wait = min(2*wait, v.Pool.MaxFailureBackoff)
	}
	if urgent {
		wait = min(wait, urgentBackoff)
	}
	return left(v.State.FailedAt, wait, v.Now)
}

// left is what is left of a time that began at since; one in the future counts as now.
func left(since time.Time, whole time.Duration, now time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return whole - max(0, now.Sub(since))
}

// Refused returns the offers that could not be launched when they were tried last, in whichever market the pool
// would have them: those that are cooling now or were a while ago. Nothing waits for pods that only these could
// run.
func (s Snapshot) Refused() map[fleet.Offer]bool {
	s.Now = s.Now.Add(-RefusedFor)
	return s.Unlaunchable()
}

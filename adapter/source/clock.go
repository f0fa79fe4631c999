package source

import "time"

// ClockStep returns how far the clock was set between two readings of it, less than 0 if it was set
// back. Readings of time.Now carry the elapsed time of the monotonic clock, from which the times of day
// then differ. A clock without one shows only that it was set back.
func ClockStep(before, after time.Time) time.Duration {
	elapsed := max(0, after.Sub(before))
	return after.Round(0).Sub(before.Round(0)) - elapsed
}

package learn

const (
	minute = int64(60_000) // ms
	hour   = 60 * minute
	day    = 24 * hour
	week   = 7 * day

	// beyond is for how much longer than a day or a week means are kept, so that what came after the same time is known.
	beyond = 30 * minute
)

// recurs are the times after which a load may do what it did.
var recurs = [...]int64{hour, day, week}

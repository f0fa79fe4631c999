package learn

const (
	minute = int64(60_000) // ms
	hour   = 60 * minute
	day    = 24 * hour
	week   = 7 * day

	// beyond is how much longer than a day or a week means are kept, so that the load after the same time of
	// the day is known.
	beyond = 30 * minute
)

// recurs are the periods after which a change of the load may recur.
var recurs = [...]int64{hour, day, week}

package learn

import (
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

// season holds the load per minute for a day and per five minutes for a week, and the minutes of the day in
// which it jumps. The zero value is empty.
type season struct {
	minutes, fiveMinutes ring
	jumps                jumps
}

// add adds the mean of a step that ends at a time (NaN if it is not known) and the mean of its visible loads.
func (s *season) add(end, step int64, mean, shown float64) {
	s.jumps.add(end, step, shown)
	if !math.IsNaN(mean) {
		s.minutes.add(end, mean, minute, day+beyond)
		s.fiveMinutes.add(end, mean, 5*minute, week+beyond)
	}
}

// rewind drops the loads after a time (ms).
func (s *season) rewind(t int64) {
	for _, r := range []*ring{&s.minutes, &s.fiveMinutes} {
		if len(r.means) == 0 {
			continue
		}
		if number := series.FloorDiv(t-1-r.origin, r.width); number < r.open {
			r.rewind(number)
		}
	}
	if number := series.FloorDiv(t-1-s.jumps.origin, minute); s.jumps.known && number < s.jumps.open {
		s.jumps.skip(number)
	}
}

// hourly is jumps.hourly for the known hours of the last week.
func (s *season) hourly(from, to int64) (share, height float64) {
	return s.jumps.hourly(from, to, float64(s.fiveMinutes.known*5*minute)/float64(hour))
}

func (s *season) clone() season {
	return season{s.minutes.clone(), s.fiveMinutes.clone(), s.jumps.clone()}
}

// ratio returns the factor by which the load changed within some time, one period earlier; NaN if that is not
// known, or was the recovery from an incident.
func (s *season) ratio(at, after, period int64) float64 {
	known := &s.minutes
	if period > day {
		known = &s.fiveMinutes
	}
	ratio := known.at(at-period+after) / known.at(at-period)
	if ratio > jumpFactor && s.recovers(at-period, after) && !s.repeats(at, after, period) {
		return math.NaN()
	}
	return ratio
}

const (
	// usualSpan is the time before a moment over which the usual load is the median (ms), and usualKnown the number of
	// five-minute slots in it that must be known.
	usualSpan, usualKnown = 6 * hour, 12
	// dip is the share of the usual load below which a load has broken down.
	dip = 0.5
	// afterDip is the time within which a load may catch up after a dip or a gap (ms).
	afterDip = 30 * minute
)

// usual returns the median load of the hours before a time; false if too little is known. A load that is low
// for most of these hours, as at night, is usual.
func (s *season) usual(at int64) (load float64, ok bool) {
	var known [usualSpan / (5 * minute)]float64
	n := 0
	for t := at - usualSpan; t < at; t += 5 * minute {
		if v := s.fiveMinutes.at(t); !math.IsNaN(v) {
			known[n] = v
			n++
		}
	}
	slices.Sort(known[:n])
	return known[n/2], n >= usualKnown
}

// breaksDown reports whether the load was less than half of the usual one, or not known, at any time between
// two times.
func (s *season) breaksDown(from, to int64, usual float64) bool {
	for t := from; t <= to; t += 5 * minute {
		if v := s.fiveMinutes.at(t); math.IsNaN(v) || v < dip*usual {
			return true
		}
	}
	return false
}

// recovers reports whether a rise was the end of an incident: the load had broken down shortly before or in
// between. Such a rise is a recovery, with work that piled up meanwhile.
func (s *season) recovers(at, after int64) bool {
	usual, ok := s.usual(at)
	return ok && (s.minutes.at(at) < dip*usual || s.breaksDown(at-afterDip, at+after, usual))
}

// incident reports whether a load that was base at a time and is rate now broke down in between or shortly
// before, but did not do so an hour, a day or a week earlier.
func (s *season) incident(at, now int64, base, rate float64) bool {
	usual, ok := s.usual(at)
	if !ok {
		return false
	}
	const open = 10 * minute // the newest slots are not known yet
	if min(base, rate) >= dip*usual && !s.breaksDown(at-afterDip, now-open, usual) {
		return false
	}
	for _, ago := range recurs {
		if before, ok := s.usual(at - ago); ok && s.breaksDown(at-afterDip-ago, now-ago, before) {
			return false
		}
	}
	return true
}

// repeats reports whether the load also grew an hour, a day or a week apart from that: a rise that recurs was
// not an incident.
func (s *season) repeats(at, after, period int64) bool {
	for _, ago := range [...]int64{2 * period, day, 2 * day, week} {
		if ago != period && s.fiveMinutes.at(at-ago+after)/s.fiveMinutes.at(at-ago) > jumpFactor {
			return true
		}
	}
	return false
}

// addMinutes adds means of minutes, the first of which begins at a time (ms).
func (s *season) addMinutes(begin int64, minutes []Minute) {
	var steps [minute / historyStep]float64
	for i, m := range minutes {
		at := begin + int64(i)*minute
		if m.known() && !m.Clipped {
			s.minutes.add(at+minute, m.Mean, minute, day+beyond)
			s.fiveMinutes.add(at+minute, m.Mean, 5*minute, week+beyond)
		}
		spreadMinute(minutes, i, steps[:])
		for k, v := range steps {
			s.jumps.add(at+int64(k+1)*historyStep, historyStep, v)
		}
	}
}

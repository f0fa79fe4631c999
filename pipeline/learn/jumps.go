package learn

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

const (
	// jumpFactor is the factor by which a load must exceed that of the preceding minutes, within a minute, to
	// be a jump.
	jumpFactor = 1.5
	// calmMinutes is the number of preceding minutes.
	calmMinutes = 3
	// minDays is the number of the last seven days on which there must have been a jump in a minute of the day, or in an
	// adjacent minute, for a jump to be expected in it.
	minDays = 3
	// minHours is the number of hours of the day in which there must have been a jump in a minute of
	// the hour for one to be expected in it, if at least hoursKnown hours are known.
	minHours, hoursKnown = 3, 6
	// jumpLate and jumpEarly extend the range of times at which jumps began to the range in which one is expected (ms).
	jumpLate, jumpEarly = 15_000, 5_000
	// maxRise caps the factor by which a single higher jump, which may have been an incident, raises the expected height.
	// drift is the number of seconds by which the earliest and the latest second move towards a jump between them.
	maxRise, drift = 1.25, 2

	minutesPerDay = int64(day / minute)
)

// jumps are the minutes of the day in which a load jumps. The zero value knows none.
type jumps struct {
	origin int64      // the time at which minute 0 begins (ms)
	open   int64      // the number of the open minute
	known  bool       // open is set
	list   []jump     // sorted by minute
	hours  [60]ofHour // number of hours of the day with jumps

	steps  [3]float64                // the newest, NaN where they are not known
	closed [calmMinutes + 2]ofMinute // the newest last
	now    ofMinute                  // the open minute
}

// jump is a minute of the day in which the load jumped within the last seven days.
type jump struct {
	minute      uint16  // of the day
	days        uint8   // one bit for each day on which it did, by the number of the day modulo 7
	first, last uint8   // the range of seconds at which it began
	height      float32 // the load after the jump
}

// ofHour holds the jumps in a minute of the hour, except those that are expected each day. It is derived from
// the list.
type ofHour struct {
	times       uint16  // number of jumps, on all days
	hours       uint8   // of the day, and
	daily       uint8   // number of hours of the day in which one is expected each day
	first, last uint8   // the seconds between which they began
	height      float32 // the load that they led to, on average
}

// ofMinute is the load of a minute.
type ofMinute struct {
	steps int64   // number of known steps
	peak  float64 // the largest mean of three consecutive steps
	began uint8   // 1 + the second at which it became high enough for a jump; 0: never
}

// add adds the mean of a step that ends at a time.
func (j *jumps) add(end, step int64, mean float64) {
	number := series.FloorDiv(end-1-j.origin, minute)
	if !j.known || number < j.open || number > j.open+minutesPerDay {
		j.skip(number)
	}
	for ; j.open < number; j.open++ {
		copy(j.closed[:], j.closed[1:])
		j.closed[len(j.closed)-1], j.now = j.now, ofMinute{}
		j.recordJump(j.open - 1)
	}
	copy(j.steps[:], j.steps[1:])
	j.steps[len(j.steps)-1] = mean
	if math.IsNaN(mean) {
		return
	}
	j.now.steps++
	if three := (j.steps[0] + j.steps[1] + j.steps[2]) / 3; three > j.now.peak {
		j.now.peak = three
	}
	if j.now.began == 0 && isJump(j.closed[len(j.closed)-calmMinutes:], mean) {
		j.now.began = uint8(min(59, series.FloorMod(end-step-j.origin, minute)/1000+1))
	}
}

// skip continues at a minute far from the open one. Days in between that are not known count as days without
// jumps, and so does the time ahead of a clock that was set back.
func (j *jumps) skip(number int64) {
	list := j.list
	from, to := series.FloorDiv(j.open, minutesPerDay), series.FloorDiv(number, minutesPerDay)
	if !j.known || to <= from-7 || to-from >= 7 {
		list = nil
	}
	passed := uint8(0)
	for d := min(from, to) + 1; list != nil && d < max(to, from+1); d++ {
		passed |= 1 << series.FloorMod(d, 7)
	}
	*j = jumps{origin: j.origin, open: number, known: true, list: list}
	for i := range j.list {
		j.list[i].days &^= passed
	}
	j.list = slices.DeleteFunc(j.list, func(x jump) bool { return x.days == 0 })
	j.rebuildHours()
}

// isJump reports whether a load is a jump compared with the preceding minutes.
func isJump(before []ofMinute, load float64) bool {
	for _, m := range before {
		if m.steps == 0 || load < jumpFactor*m.peak {
			return false
		}
	}
	return load > 0
}

// recordJump records whether the load jumped in a minute, which is the last but one of the closed minutes.
func (j *jumps) recordJump(number int64) {
	then, after := j.closed[calmMinutes], j.closed[calmMinutes+1]
	jumped := then.began > 0 && isJump(j.closed[:calmMinutes], then.peak)
	today := uint8(1) << series.FloorMod(series.FloorDiv(number, minutesPerDay), 7)
	at, found := j.findMinute(number)
	switch height := float32(max(then.peak, after.peak)); {
	case jumped && found:
		x := &j.list[at]
		x.days |= today
		x.first, x.last = min(x.first+drift, then.began), max(x.last-min(x.last, drift), then.began)
		x.height = min(max(height, (3*x.height+height)/4), maxRise*x.height)
	case jumped:
		minute := uint16(series.FloorMod(number, minutesPerDay))
		j.list = slices.Insert(j.list, at,
			jump{minute: minute, days: today, first: then.began, last: then.began, height: height})
	case found && then.steps > 0:
		if j.list[at].days &^= today; j.list[at].days == 0 {
			j.list = slices.Delete(j.list, at, at+1)
		}
	default:
		return
	}
	j.rebuildHours()
}

// rebuildHours derives the jumps by minute of the hour from the list.
func (j *jumps) rebuildHours() {
	j.hours = [60]ofHour{}
	for i := range j.list {
		x := &j.list[i]
		sum := &j.hours[x.minute%60]
		days := bits.OnesCount8(x.days)
		if days >= minDays {
			sum.daily++
			continue
		}
		if sum.times == 0 {
			sum.first, sum.last = x.first, x.last
		}
		sum.first, sum.last = min(sum.first, x.first), max(sum.last, x.last)
		sum.times += uint16(days)
		sum.hours++
		sum.height += (x.height - sum.height) * float32(days) / float32(sum.times)
	}
}

// largestDue returns the largest load of the jumps that are expected between two times; 0 without any.
func (j *jumps) largestDue(from, to int64) float64 {
	from, to = from-j.origin, to-j.origin
	largest := float32(0)
	for number := series.FloorDiv(from-jumpLate, minute) - 1; number <= series.FloorDiv(to, minute); number++ {
		at, found := j.findMinute(number)
		if !found || !j.recurs(number) {
			continue
		}
		if x := &j.list[at]; mayBegin(number, x.first, x.last, from, to) {
			largest = max(largest, x.height)
		}
	}
	return float64(largest)
}

// hourly returns the share of the known hours of the last week in which the load jumped in a minute of the hour
// that falls between two times, and the mean load after these jumps; 0 without any. Jumps that are expected
// each day do not count, and neither do their hours.
func (j *jumps) hourly(from, to int64, hours float64) (share, height float64) {
	if hours < hoursKnown {
		return 0, 0
	}
	from, to = from-j.origin, to-j.origin
	for number := series.FloorDiv(from-jumpLate, minute) - 1; number <= series.FloorDiv(to, minute); number++ {
		sum := &j.hours[series.FloorMod(number, 60)]
		if sum.hours < minHours || !mayBegin(number, sum.first, sum.last, from, to) {
			continue
		}
		often := float64(sum.times) / (hours * (1 - float64(sum.daily)/24))
		share += often
		height += often * float64(sum.height)
	}
	if share == 0 {
		return 0, 0
	}
	return min(1, share), height / share
}

// mayBegin reports whether a jump that begins in a range of seconds of a minute may begin between two times.
func mayBegin(number int64, first, last uint8, from, to int64) bool {
	begins := number * minute
	return begins+int64(first)*1000-jumpEarly <= to && from <= begins+int64(last)*1000+jumpLate
}

// recurs reports whether the load jumps in a minute of the day on enough days, and at least as often as in the
// adjacent minutes.
func (j *jumps) recurs(number int64) bool {
	before, then, after := j.days(number-1), j.days(number), j.days(number+1)
	return bits.OnesCount8(before|then|after) >= minDays &&
		bits.OnesCount8(then) >= max(bits.OnesCount8(before), bits.OnesCount8(after))
}

// findMinute returns the index of a minute of the day in the list.
func (j *jumps) findMinute(number int64) (at int, found bool) {
	minute := uint16(series.FloorMod(number, minutesPerDay))
	return slices.BinarySearchFunc(j.list, minute, func(a jump, b uint16) int { return cmp.Compare(a.minute, b) })
}

// days returns the days on which the load jumped in a minute of the day.
func (j *jumps) days(number int64) uint8 {
	if at, found := j.findMinute(number); found {
		return j.list[at].days
	}
	return 0
}

func (j *jumps) clone() jumps {
	out := *j
	out.list = slices.Clone(j.list)
	return out
}

// fill adds the jumps of a history, except at times at which the load was learned directly.
func (j *jumps) fill(history *jumps, learned func(t int64) bool) {
	if !j.known {
		*j = *history
		return
	}
	if history.open > j.open {
		j.skip(history.open)
	}
	for _, x := range history.list {
		for days := x.days; days != 0; days &= days - 1 {
			number := history.newest(int64(x.minute), int64(bits.TrailingZeros8(days)))
			if number > j.open-7*minutesPerDay && number <= j.open && !learned(j.origin+number*minute) {
				j.addDay(x, days&-days)
			}
		}
	}
	j.rebuildHours()
}

// newest returns the number of a minute of the day on a given one of the last seven days.
func (j *jumps) newest(ofDay, day int64) int64 {
	today := series.FloorDiv(j.open, minutesPerDay)
	ago := series.FloorMod(today-day, 7)
	if ago == 0 && ofDay > series.FloorMod(j.open, minutesPerDay) {
		ago = 7
	}
	return (today-ago)*minutesPerDay + ofDay
}

// addDay adds a day on which the load jumped.
func (j *jumps) addDay(x jump, day uint8) {
	at, found := j.findMinute(int64(x.minute))
	if !found {
		x.days = day
		j.list = slices.Insert(j.list, at, x)
		return
	}
	own := &j.list[at]
	own.days |= day
	own.first, own.last = min(own.first, x.first), max(own.last, x.last)
}

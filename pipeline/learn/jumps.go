package learn

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

const (
	// jumpFactor is the factor by which a load must exceed that of the minutes before, within a minute, to be a jump.
	jumpFactor = 1.5
	// calmMinutes is the number of the minutes before.
	calmMinutes = 3
	// A jump is expected in a minute of the day if there was one in it, or in the minute before or after it, on
	// leastDays of the last seven.
	leastDays = 3
	// A jump is expected in a minute of any hour if there was one in it in leastHours of the day, when hoursKnown are
	// known.
	leastHours, hoursKnown = 3, 6
	// jumpLate and jumpEarly extend the range of times at which a jump has begun to the one at which it is expected
	// (ms).
	jumpLate, jumpEarly = 15_000, 5_000
	// mostRise caps how far a single higher jump, which may have been an incident, raises the expected height. drift is
	// the number of seconds by which the earliest and the latest second move towards a jump that is between them.
	mostRise, drift = 1.25, 2

	minutesPerDay = int64(day / minute)
)

// jumps are the minutes of the day in which a load jumps. The zero value knows none.
type jumps struct {
	origin int64  // the time of the minute of number 0 (ms)
	open   int64  // the number of the minute that is open
	known  bool   // open is
	list   []jump // in order of their minute
	hours  [60]ofHour

	steps  [3]float64                // the newest, NaN where they are not known
	closed [calmMinutes + 2]ofMinute // the newest last
	now    ofMinute                  // the open one
}

// jump is a minute of the day in which a load has jumped in the last seven days.
type jump struct {
	minute      uint16  // of the day
	days        uint8   // a bit for the number of each day on which it did, modulo 7
	first, last uint8   // the seconds between which it began
	height      float32 // the load that it led to
}

// ofHour holds the jumps in a minute of the hour, except those that are expected each day. It follows from the list.
type ofHour struct {
	times       uint16  // on all days
	hours       uint8   // of the day, and
	daily       uint8   // those in which it is expected each day
	first, last uint8   // the seconds between which they began
	height      float32 // the load that they led to, on average
}

// ofMinute is the load of a minute.
type ofMinute struct {
	steps int64   // that are known
	peak  float64 // the largest mean of three of them
	began uint8   // 1 + the second from which on it was high enough for a jump; 0: it was not
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
		j.note(j.open - 1)
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

// skip continues at a minute far from the open one. Days between that are not known have no jumps, and neither has the
// time that lies ahead of a clock which was set back.
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
	j.sumUp()
}

// isJump reports whether a load is that of a jump after some minutes.
func isJump(before []ofMinute, load float64) bool {
	for _, m := range before {
		if m.steps == 0 || load < jumpFactor*m.peak {
			return false
		}
	}
	return load > 0
}

// note records whether the load jumped in a minute, which is the last but one that is closed.
func (j *jumps) note(number int64) {
	then, after := j.closed[calmMinutes], j.closed[calmMinutes+1]
	jumped := then.began > 0 && isJump(j.closed[:calmMinutes], then.peak)
	today := uint8(1) << series.FloorMod(series.FloorDiv(number, minutesPerDay), 7)
	at, found := j.find(number)
	switch height := float32(max(then.peak, after.peak)); {
	case jumped && found:
		x := &j.list[at]
		x.days |= today
		x.first, x.last = min(x.first+drift, then.began), max(x.last-min(x.last, drift), then.began)
		x.height = min(max(height, (3*x.height+height)/4), mostRise*x.height)
	case jumped:
		minute := uint16(series.FloorMod(number, minutesPerDay))
		j.list = slices.Insert(j.list, at, jump{minute: minute, days: today, first: then.began, last: then.began, height: height})
	case found && then.steps > 0:
		if j.list[at].days &^= today; j.list[at].days == 0 {
			j.list = slices.Delete(j.list, at, at+1)
		}
	default:
		return
	}
	j.sumUp()
}

// sumUp sums the list up by minutes of the hour.
func (j *jumps) sumUp() {
	j.hours = [60]ofHour{}
	for i := range j.list {
		x := &j.list[i]
		sum := &j.hours[x.minute%60]
		days := bits.OnesCount8(x.days)
		if days >= leastDays {
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

// due returns the largest load of the jumps that are expected from one time to another; 0 without any.
func (j *jumps) due(from, to int64) float64 {
	from, to = from-j.origin, to-j.origin
	largest := float32(0)
	for number := series.FloorDiv(from-jumpLate, minute) - 1; number <= series.FloorDiv(to, minute); number++ {
		at, found := j.find(number)
		if !found || !j.recurs(number) {
			continue
		}
		if x := &j.list[at]; mayBegin(number, x.first, x.last, from, to) {
			largest = max(largest, x.height)
		}
	}
	return float64(largest)
}

// hourly returns the share of the known hours of the last week in which the load jumped in a minute of the hour that is
// due from one time to another, and the load to which it did; 0 without any. Jumps that are expected each day, and
// their hours, do not count.
func (j *jumps) hourly(from, to int64, hours float64) (share, height float64) {
	if hours < hoursKnown {
		return 0, 0
	}
	from, to = from-j.origin, to-j.origin
	for number := series.FloorDiv(from-jumpLate, minute) - 1; number <= series.FloorDiv(to, minute); number++ {
		sum := &j.hours[series.FloorMod(number, 60)]
		if sum.hours < leastHours || !mayBegin(number, sum.first, sum.last, from, to) {
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

// mayBegin reports whether a jump that begins between two seconds of a minute may begin from one time to another.
func mayBegin(number int64, first, last uint8, from, to int64) bool {
	begins := number * minute
	return begins+int64(first)*1000-jumpEarly <= to && from <= begins+int64(last)*1000+jumpLate
}

// recurs reports whether the load jumps in a minute of the day on enough days, and not more often in one next to it.
func (j *jumps) recurs(number int64) bool {
	before, then, after := j.days(number-1), j.days(number), j.days(number+1)
	return bits.OnesCount8(before|then|after) >= leastDays &&
		bits.OnesCount8(then) >= max(bits.OnesCount8(before), bits.OnesCount8(after))
}

// find returns where a minute of the day is in the list.
func (j *jumps) find(number int64) (at int, found bool) {
	minute := uint16(series.FloorMod(number, minutesPerDay))
	return slices.BinarySearchFunc(j.list, minute, func(a jump, b uint16) int { return cmp.Compare(a.minute, b) })
}

// days returns the days on which the load jumped in a minute of the day.
func (j *jumps) days(number int64) uint8 {
	if at, found := j.find(number); found {
		return j.list[at].days
	}
	return 0
}

func (j *jumps) clone() jumps {
	out := *j
	out.list = slices.Clone(j.list)
	return out
}

// fill adds the jumps of a history, except those at times at which the load was learned as it came.
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
				j.recall(x, days&-days)
			}
		}
	}
	j.sumUp()
}

// newest returns the number of a minute of the day on the given one of the last seven days.
func (j *jumps) newest(ofDay, day int64) int64 {
	today := series.FloorDiv(j.open, minutesPerDay)
	ago := series.FloorMod(today-day, 7)
	if ago == 0 && ofDay > series.FloorMod(j.open, minutesPerDay) {
		ago = 7
	}
	return (today-ago)*minutesPerDay + ofDay
}

// recall adds a day on which the load jumped.
func (j *jumps) recall(x jump, day uint8) {
	at, found := j.find(int64(x.minute))
	if !found {
		x.days = day
		j.list = slices.Insert(j.list, at, x)
		return
	}
	own := &j.list[at]
	own.days |= day
	own.first, own.last = min(own.first, x.first), max(own.last, x.last)
}

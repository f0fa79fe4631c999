package prometheus

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/gate"
)

// whole adds up the series that are the load of a target together, such as those of several gateways, so that
// each load counts once. What is known of the pods that have the series opens and closes them: the load of a
// pod that is gone, or leaves, moves to others. A sum that lacks a series would look like a fall, so one that
// is silent counts on by its last reading for a while, and there is no sum before each has been read.
type whole struct {
	as      source.Type
	label   model.LabelName                       // names the pod that has a series
	pods    func(name string) podtracker.PodState // of the namespace; nil: nothing is known of them
	began   int64                                 // the first reading of all (ms)
	parts   map[model.Fingerprint]*part
	order   []*part // all of them by id, as of the last answer: replicas come to equal sums to the last digit
	spacing int64   // the longest between two readings of a series (ms)
	every   int64   // the shortest, at least minEvery
	begun   []*part // those that had no value after a reading, in order of time
	// answered is the newest reading of the last answer (ms), 0 before the first.
	answered int64
	refused  *part             // that has a reading in the newest answer that cannot be a load, nil without one
	withheld bool              // too much was unknown for the last sum
	emitted  int64             // the time of the last sum (ms), 0 before the first
	sums     []pipeline.Sample // of the last keptSums
}

// part is one series of the sum.
type part struct {
	id       model.Fingerprint // of its labels
	labels   model.Metric
	pod      string // that has it, "" if it names none
	state    podtracker.PodState
	present  bool  // the pod has been seen
	starting bool  // it is not Ready
	began    int64 // its first reading (ms), 0 if it was there before the first of all
	read     int64 // its last one (ms)
	newest   int64 // its last one in the newest answer that is a number (ms)
	ends     bool  // its last one in the newest answer is NaN, as some servers write the marker of an end
	joins    int64 // since when it takes over loads of others (ms), 0 = it was there before
	value    float64
	before   float64 // at the reading before
	known    bool    // it has a value: a counter has none before its second reading
	spacing  int64
	rate     source.Rate
	seen     time.Time // when it was last in an answer
	moves    int64     // after when its load moves, or may move, to other series (ms), 0 = it does not
	left     int64     // by when that has begun (ms)
	moved    float64   // the load that it had then
	next     *part     // that has replaced it, nil without one
	ended    int64     // up to when its readings are those before its load moved (ms)
	silent   bool      // it is overdue, and may have been replaced
	replaces bool      // a series has been closed because this one began
	follows  bool      // it may replace a series of its pod that is not overdue
	refused  int64     // its last reading that cannot be a load (ms), 0 without one
	why      error     // what was wrong with that
	weight   float64   // its load as a multiple of the mean of the others; 0 while its last reading counts
}

const (
	// silentSpacings is for how many of its spacings a series counts on without a reading: failed scrapes are
	// no fall of the load.
	silentSpacings = 3
	// minSilence is the least time for that, as long as samples are fresh by default (ms).
	minSilence = 30_000
	// replacedAfter is after how many quarters of its spacing without a reading a series gives way to
	// one that has begun, and how long a sum waits for a series that has no value yet.
	replacedAfter = 5
	// movingSpacings is for how many spacings the load of a series that has ended may not show in others yet.
	movingSpacings = 2
	// maxOverlap is how long before its predecessor's last reading a series may have begun (ms).
	maxOverlap = 5 * 60_000
	// takeover is how long after its first reading a series of an unknown pod may be taking loads over (ms).
	takeover = 2 * 60_000
	// minEvery is the least spacing of sums (ms): as long as that of queries, however close readings are.
	minEvery = int64(minInterval / time.Millisecond)
	// keptSums is how long sums are kept (ms): longer than a load moves.
	keptSums = 2 * maxOverlap
)

// reading is one of some series at a time.
type reading struct {
	pipeline.Sample
	of  *part
	err error // why it cannot be a load, or nil
}

// take returns the sums at the times of new readings, about one in the time between two readings of a series.
func (w *whole) take(all []*series, spacing int64, now time.Time) []pipeline.Sample {
	w.spacing = spacing
	newest := newestOf(all)
	if newest < w.emitted {
		w.parts, w.begun, w.answered, w.emitted, w.sums = nil, nil, 0, 0, nil // the server's clock has been set back
	}
	if w.parts == nil {
		w.parts, w.began = map[model.Fingerprint]*part{}, firstOf(all)
	}
	fresh := w.read(all, now)
	w.close(newest)
	w.answered = newest
	w.refused, w.withheld = nil, false
	start := int64(0)
	switch {
	case w.emitted > 0:
	case w.as == source.Counter:
		start = startOf(fresh, 2, spacing)
	default:
		start = startOf(fresh, 1, spacing)
	}
	var sums []pipeline.Sample
	for i, x := range fresh {
		w.update(x)
		last := i+1 == len(fresh) || fresh[i+1].T > x.T
		if last && x.T >= start && x.T >= w.emitted+w.every*3/4 && w.complete(x.T) {
			v, known := w.sum(x.T)
			if w.withheld = !known; known {
				sums = append(sums, w.emit(pipeline.Sample{T: x.T, V: v}))
			}
		}
	}
	return sums
}

// read returns the readings that have not been taken yet, in order of time.
func (w *whole) read(all []*series, now time.Time) []reading {
	var fresh []reading
	w.every = w.spacing
	unit := unitOf(all)
	for _, s := range all {
		id := s.labels.Fingerprint()
		p := w.parts[id]
		if p == nil {
			p = &part{id: id, labels: s.labels, pod: string(s.labels[w.label])}
			if w.emitted > 0 || s.first() > w.began+w.spacing*3/2 {
				p.began, p.joins = s.first(), s.first()
			}
			w.parts[id] = p
		}
		p.seen, p.spacing = now, cmp.Or(s.spacing, p.spacing)
		w.every = min(w.every, cmp.Or(p.spacing, w.every))
		if s.spacing == 0 && p.spacing == 0 && p.read > 0 {
			p.spacing = s.last() - p.read // 0 if it has not been read since
		}
		p.ends = math.IsNaN(s.samples[len(s.samples)-1].V)
		for _, x := range s.samples {
			if !math.IsNaN(x.V) {
				p.newest = x.T
			}
			if x.T > max(p.read, p.refused) {
				fresh = append(fresh, reading{x, p, possible(s, x, unit)})
			}
		}
	}
	w.every = max(w.every, minEvery)
	w.order = slices.SortedFunc(maps.Values(w.parts), func(a, b *part) int { return cmp.Compare(a.id, b.id) })
	slices.SortStableFunc(fresh, func(a, b reading) int { return cmp.Compare(a.T, b.T) })
	return fresh
}

// close records which series have ended, or may have, by the clock of the server: those of pods that are
// gone, those of pods that leave, from then on, and of the others those that are overdue and have a successor.
// It opens none of them again before a later reading: a pod may come back by its name with other series.
func (w *whole) close(now int64) {
	for _, p := range w.order {
		if p.state == podtracker.PodLeaving {
			p.ended = now // the pod may have been scraped until now
		}
		p.state, p.silent = w.stateOf(p), false
		switch p.state {
		case podtracker.PodStarting:
			p.present, p.starting = true, true
		case podtracker.PodReady:
			if p.starting {
				p.joins = w.answered
			}
			p.present, p.starting = true, false
		case podtracker.PodLeaving:
			p.present = true
			if p.moves == 0 { // some time since the last answer
				p.moves, p.left, p.moved = cmp.Or(w.answered, now), now, p.value
			}
			continue
		}
		if p.newest > p.ended {
			p.moves, p.next = 0, nil
		}
		p.silent = p.moves == 0 && (p.ends || now-p.newest > w.spacingOf(p)*replacedAfter/4)
	}
	w.closeReplaced()
	w.follow()
}

// stateOf returns what is known of the pod that has a series. One that has gone leaves, one that has not been
// seen yet is unknown.
func (w *whole) stateOf(p *part) podtracker.PodState {
	if p.pod == "" || w.pods == nil {
		return podtracker.PodUnknown
	}
	state := w.pods(p.pod)
	switch {
	case state != podtracker.PodAbsent:
		return state
	case p.present:
		return podtracker.PodLeaving
	}
	return podtracker.PodUnknown
}

// closeReplaced closes the silent series that have a successor each: another one of their pod first. Those of
// unknown pods may be replaced by any series, unless that may still replace another one of its own pod.
func (w *whole) closeReplaced() {
	silent, began := map[string][]*part{}, map[string][]*part{}
	for _, p := range w.order {
		if p.silent {
			silent[p.pod] = append(silent[p.pod], p)
		}
		if !p.replaces {
			began[p.pod] = append(began[p.pod], p)
		}
	}
	var unknown, anyones []*part
	for pod, parts := range silent {
		if pod != "" {
			replace(parts, began[pod])
		}
		for _, p := range parts {
			if p.silent && p.state == podtracker.PodUnknown {
				unknown = append(unknown, p)
			}
		}
	}
	if len(unknown) == 0 {
		return
	}
	w.follow()
	for _, parts := range began {
		for _, p := range parts {
			if !p.silent && !p.replaces && !p.follows {
				anyones = append(anyones, p)
			}
		}
	}
	replace(unknown, anyones)
}

// follow records which series may have replaced another one of their pod that is not overdue yet: that has
// not been read since they began.
func (w *whole) follow() {
	oldest := map[string]int64{} // the newest reading of each series, the least of each pod
	for _, p := range w.order {
		if p.moves == 0 && !p.silent && p.pod != "" {
			oldest[p.pod] = min(p.newest, cmp.Or(oldest[p.pod], p.newest))
		}
	}
	for _, p := range w.order {
		p.follows = p.moves == 0 && !p.silent && p.pod != "" && p.began > oldest[p.pod]
	}
}

// replaceable returns the time after which a successor of a silent series has begun.
func (p *part) replaceable() int64 { return max(p.began, p.newest-maxOverlap) }

// replace closes each of some silent series that has a successor of its own among some others: one that began
// since, or not long before the last reading if it is read.
func replace(silent, began []*part) {
	slices.SortFunc(silent, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.replaceable(), b.replaceable()), cmp.Compare(a.id, b.id))
	})
	slices.SortFunc(began, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.id, b.id))
	})
	for _, next := range began {
		if len(silent) == 0 {
			return
		}
		p := silent[0]
		if next.began <= p.replaceable() || next.silent && next.began <= p.newest {
			continue
		}
		silent, next.replaces = silent[1:], true
		p.next, p.silent, p.moved = next, false, 0
		p.moves, p.left, p.ended = max(p.newest, next.began-1), p.newest, p.newest
	}
}

// spacingOf is how far readings of a series are apart, that of all if it has been read once.
func (w *whole) spacingOf(p *part) int64 { return cmp.Or(p.spacing, w.spacing) }

// startOf returns the time before which there are no sums: the first answer begins in the middle of the series, one
// after the other. Each needs a number of readings to have a value.
func startOf(fresh []reading, needed int, spacing int64) (start int64) {
	readings := map[*part]int{}
	for _, x := range fresh {
		if readings[x.of]++; readings[x.of] == needed && x.T <= fresh[0].T+int64(needed)*spacing*3/2 {
			start = max(start, x.T)
		}
	}
	return start
}

// update has a reading count from now on. Readings of a counter less than half a spacing apart are of two servers
// that scrape it.
func (w *whole) update(x reading) {
	p := x.of
	if x.err != nil {
		p.refused, p.why, w.refused = x.T, x.err, p
		return
	}
	if w.as == source.Counter {
		if p.read > 0 && x.T-p.read < p.spacing/2 {
			return
		}
		rate, ok := p.rate.Next(x.Sample, p.spacing/2)
		if !ok {
			p.read = x.T
			if !p.known {
				w.begun = append(w.begun, p)
			}
			return
		}
		x.V = rate.V
	}
	p.read = x.T
	p.set(x.V)
}

func (p *part) set(value float64) { p.before, p.value, p.known, p.weight = p.value, value, true, 0 }

// silence returns the time for which a series counts without a new reading.
func (w *whole) silence(p *part) int64 { return max(minSilence, silentSpacings*w.spacingOf(p)) }

// awaited reports whether a series that has begun has no value yet.
func (w *whole) awaited(p *part, at int64) bool {
	return !p.known && p.read > 0 && at-p.read <= 2*w.spacingOf(p)
}

// complete reports whether there may be a sum: each series has a value, or sums have waited for long
// enough, as where new ones keep coming.
func (w *whole) complete(at int64) bool {
	for len(w.begun) > 0 && !w.awaited(w.begun[0], at) {
		w.begun = w.begun[1:]
	}
	return len(w.begun) == 0 || w.emitted > 0 && at-w.emitted > w.spacing*replacedAfter/4
}

// emit returns a sum, and keeps it.
func (w *whole) emit(x pipeline.Sample) pipeline.Sample {
	w.emitted = x.T
	w.sums = append(w.sums, x)
	if old := x.T - keptSums; w.sums[0].T < old {
		w.sums = slices.DeleteFunc(w.sums, func(s pipeline.Sample) bool { return s.T < old })
	}
	return x
}

// sum adds up what counts at a time. While loads move from series to series, the sum stays where it was
// before that began, unless it falls by more than what may be moving: neither a load that shows in two
// of them nor one that shows in none makes a difference. It returns false while too much of it is unknown.
func (w *whole) sum(at int64) (float64, bool) {
	t := tally{at: at, since: at, settled: w.settled(at)}
	for _, p := range w.order {
		switch silence := w.silence(p); {
		case w.awaited(p, at):
			t.await(p)
		case !p.open(at):
			t.leave(p, movingSpacings*w.spacingOf(p))
		case p.known && at-p.read <= silence:
			t.add(p, w.young(p, at), w.shows(p))
		case p.moves == 0 && p.refused > p.read && at-p.refused <= silence:
			t.unknown = append(t.unknown, p)
		}
	}
	t.takeOver()
	known := t.estimate()
	return max(t.sum, min(w.sumBefore(t.since), t.sum+t.moving)), known
}

// tally is a sum at a time (ms), and what may be moving.
type tally struct {
	at, settled int64
	sum         float64 // of the loads of the series
	old         float64 // the part of sum of series that are not young
	count       int     // of these
	moving      float64
	since       int64   // when the first of it began to move
	young       []*part // that take loads over
	leaving     []*part // whose loads others take over
	shown       []int64 // for each that counts, the time from which on its value is of
	unknown     []*part // that have readings, none of which can be a load
}

// from notes that something moves from a time on.
func (t *tally) from(since int64) { t.since = min(t.since, since) }

func (t *tally) move(load float64, since int64) {
	t.moving += load
	t.from(since)
}

// await takes a series that has no value yet for one that may take loads over.
func (t *tally) await(p *part) {
	if !p.starting {
		t.young = append(t.young, p)
		t.from(p.began)
	}
}

// leave takes a series for one whose load others take over, for some time after it has ended.
func (t *tally) leave(p *part, moving int64) {
	if p.known && t.at-max(p.moves, p.read) <= moving {
		t.leaving = append(t.leaving, p)
	}
}

// add adds what a series carries. What the pod of a young one has taken over since all others were read may
// still be in those.
func (t *tally) add(p *part, young bool, shown int64) {
	t.sum += p.value
	t.shown = append(t.shown, shown)
	if !young {
		t.old += p.value
		t.count++
		return
	}
	t.young = append(t.young, p)
	grown, since := p.value-p.before, p.read-1
	if p.follows {
		grown, since = p.value, p.began-1
	}
	if grown > 0 && (p.follows || p.present && p.read > t.settled) {
		t.sum -= grown
		t.move(grown, since)
	}
}

// takeOver has the young series carry as much as the others do on average: that may have left those,
// and not be read of these yet. Of what carried a load that leaves, that part may be moving that not
// all others show yet.
func (t *tally) takeOver() {
	if len(t.leaving) > 0 {
		slices.Sort(t.shown)
	}
	for _, p := range t.leaving {
		before, _ := slices.BinarySearch(t.shown, p.left+1)
		unshown := 1.0
		if len(t.shown) > 0 {
			unshown = float64(before) / float64(len(t.shown))
		}
		if load := max(p.value, p.moved) * unshown; load > 0 {
			t.move(load, p.moves)
		}
	}
	if t.count == 0 {
		return
	}
	share := t.old / float64(t.count)
	for _, p := range t.young {
		if p.read < t.at && p.value < share {
			t.move(share-p.value, p.read)
		}
	}
}

// estimate adds what the unknown series carry: the multiple of the mean of the others that it was when they were
// last known, or the mean itself. It returns false unless the known ones carry the larger part.
func (t *tally) estimate() bool {
	mean, estimate := t.sum/float64(len(t.shown)), 0.0
	for _, p := range t.unknown {
		if p.weight == 0 {
			p.weight = 1
			if p.known && p.value != mean {
				p.weight = p.value / mean
			}
		}
		estimate += p.weight * mean
	}
	known := len(t.unknown) == 0 || estimate < t.sum || t.sum == 0 && estimate == 0 && len(t.unknown) < len(t.shown)
	if known {
		t.sum += estimate
	}
	return known
}

// shows returns the time from which on the value of a series is of: the rate of a counter is one since the
// reading before.
func (w *whole) shows(p *part) int64 {
	if w.as == source.Counter {
		return p.read - w.spacingOf(p)
	}
	return p.read
}

// open reports whether a series carries its load at a time. One that has been replaced does until the next one
// has a value.
func (p *part) open(at int64) bool {
	return p.moves == 0 || at <= p.moves || p.next != nil && !p.next.takenOver()
}

// takenOver reports whether a series, or one that has replaced it since, has a value.
func (p *part) takenOver() bool {
	for ; p != nil; p = p.next {
		if p.known {
			return true
		}
	}
	return false
}

// young reports whether a series may be taking over loads of others at a time: as long as those may not show
// all it takes if it is known when its pod became Ready, and otherwise for longer.
func (w *whole) young(p *part, at int64) bool {
	if p.present {
		return p.joins > 0 && (!p.starting || p.follows) && at-p.joins <= movingSpacings*w.spacingOf(p)
	}
	return p.joins > 0 && at-p.joins <= takeover
}

// settled returns the time up to which all series but the young ones have been read.
func (w *whole) settled(at int64) int64 {
	settled := at
	for _, p := range w.order {
		if p.known && p.open(at) && at-p.read <= w.silence(p) && !w.young(p, at) {
			settled = min(settled, p.read)
		}
	}
	return settled
}

// sumBefore returns the last sum up to a time, 0 without one.
func (w *whole) sumBefore(at int64) float64 {
	for _, x := range slices.Backward(w.sums) {
		if x.T <= at {
			return x.V
		}
	}
	return 0
}

// refusedPart returns a series whose newest reading cannot be a load, or else one with another such reading in
// the newest answer, or nil.
func (w *whole) refusedPart() *part {
	for _, p := range w.order {
		if p.refused > p.read && p.moves == 0 && w.answered-p.refused <= w.silence(p) {
			return p
		}
	}
	return w.refused
}

// silentPart returns a series that counts on without readings, or nil.
func (w *whole) silentPart() *part {
	var found *part
	for _, p := range w.parts {
		quiet := w.emitted - p.read
		countsOn := p.known && p.moves == 0 && quiet > 2*w.spacingOf(p) && quiet <= w.silence(p)
		if countsOn && (found == nil || p.read < found.read) {
			found = p
		}
	}
	return found
}

// forget drops series that have not been in an answer for long.
func (w *whole) forget(before time.Time) {
	for id, p := range w.parts {
		if p.seen.Before(before) {
			delete(w.parts, id)
		}
	}
}

func newestOf(all []*series) int64 {
	newest := int64(0)
	for _, s := range all {
		newest = max(newest, s.last())
	}
	return newest
}

func firstOf(all []*series) int64 {
	first := int64(math.MaxInt64)
	for _, s := range all {
		first = min(first, s.first())
	}
	return first
}

// takeWhole gives the sink the load of the target as a whole. The caller holds the lock.
func (u *subscription) takeWhole(a *answer, t taking) {
	all := slices.Concat(a.series, a.unlabeled)
	if trouble := u.wholeTrouble(a, t, all); trouble != nil {
		u.sink.SourceFailed(trouble)
		return
	}
	if u.whole == nil {
		u.whole = &whole{as: u.config.Type, label: model.LabelName(u.config.OwnerLabel), pods: u.fleet.PodState}
	}
	u.begun = true
	if sums := u.whole.take(all, t.spacing, t.now); len(sums) > 0 {
		u.sink.Append(source.WholeTarget, sums...)
	}
	u.whole.forget(t.now.Add(-2 * u.config.reach()))
	u.sink.SourceFailed(u.partTrouble())
}

// partTrouble returns what is wrong with a series of the load of the target as a whole, or nil.
func (u *subscription) partTrouble() error {
	c, w := &u.config, u.whole
	if p := w.refusedPart(); p != nil {
		effect := "its load is estimated until it has another one"
		if w.withheld {
			effect = "the load is unknown, as the series that can be read are not the larger part of it"
		}
		return fmt.Errorf("%s: query %.200q: %w; %s", c.Address, c.Query, p.why, effect)
	}
	if p := w.silentPart(); p != nil {
		return fmt.Errorf("%s: query %.200q: there is no new reading of %s, whose last one counts for at most %s",
			c.Address, c.Query, promapi.Short(p.labels.String()), time.Duration(w.silence(p))*time.Millisecond)
	}
	return nil
}

// wholeTrouble returns why the answer is not the load of the target, or nil. A part of it would be a small load.
func (u *subscription) wholeTrouble(a *answer, t taking, all []*series) error {
	c := &u.config
	switch {
	case a.partial != "":
		return fmt.Errorf("%s: query %.200q: the server warns, so series of the load may be missing: %s",
			c.Address, c.Query, a.partial)
	case len(all) == 0 && a.foreign > 0:
		return foreignError(c, a.foreign)
	case len(all) == 0:
		return emptyError(c, t.span, "")
	}
	return nil
}

// unitOf returns the unit in which rounding of the load of a target as a whole is judged.
func unitOf(all []*series) float64 {
	unit := 1.0
	for _, s := range all {
		unit = gate.Unit(unit, s.samples)
	}
	return unit
}

// possible returns why a sample of a series cannot be a load, or nil.
func possible(s *series, x pipeline.Sample, unit float64) error {
	err := s.err
	if err == nil {
		_, err = gate.Number(x.V, unit)
	}
	if impossible, ok := errors.AsType[*gate.Impossible](err); ok {
		err = fmt.Errorf("a value of a series is %.6g: must be %s", impossible.Value, impossible.Accept)
	}
	if err != nil {
		return fmt.Errorf("%w (%s)", err, promapi.Short(s.labels.String()))
	}
	return nil
}

package prometheus

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/gate"
)

// whole adds up the series that are the load of a target together, such as those of several gateways. A sum that lacks some of them
// would look like a fall, so each counts on by its last reading for a while, and there is no sum before each has been read.
type whole struct {
	as      source.Type
	parts   map[model.Fingerprint]*part
	spacing int64 // the longest between two readings of a series (ms)
	emitted int64 // the time of the last sum (ms), 0 before the first
}

// part is one series of the sum.
type part struct {
	id      model.Fingerprint // of its labels
	labels  model.Metric
	began   int64   // its first reading (ms)
	read    int64   // its last one (ms)
	value   float64 // by that
	known   bool    // it has a value: a counter has none before its second reading
	spacing int64
	rate    source.Rate
	seen    time.Time // when it was last in an answer
}

const (
	// silentSpacings is for how many of its spacings a series counts on without a reading: failed scrapes are no fall of the load.
	silentSpacings = 3
	// leastSilence is the least time for that, as long as samples are fresh by default (ms).
	leastSilence = 30_000
	// replacedAfter is after how many quarters of its spacing without a reading a series gives way to one that began since.
	replacedAfter = 5
)

// reading is one of some series at a time.
type reading struct {
	pipeline.Sample
	of *part
}

// take returns the sums at the times of new readings, about one in the time between two readings of a series.
func (w *whole) take(all []*series, spacing int64, now time.Time) []pipeline.Sample {
	w.spacing = spacing
	if newest := newestOf(all); newest < w.emitted {
		w.parts, w.emitted = nil, 0 // the server's clock has been set back
	}
	if w.parts == nil {
		w.parts = map[model.Fingerprint]*part{}
	}
	fresh := w.read(all, now)
	start := w.start(fresh)
	var sums []pipeline.Sample
	for i, x := range fresh {
		w.update(x)
		last := i+1 == len(fresh) || fresh[i+1].T > x.T
		if last && x.T >= start && x.T >= w.emitted+w.spacing*3/4 && w.complete(x.T) {
			sums = append(sums, pipeline.Sample{T: x.T, V: w.sum(x.T)})
			w.emitted = x.T
		}
	}
	return sums
}

// read returns the readings that have not been taken yet, in order of time.
func (w *whole) read(all []*series, now time.Time) []reading {
	var fresh []reading
	for _, s := range all {
		id := s.labels.Fingerprint()
		p := w.parts[id]
		if p == nil {
			p = &part{id: id, labels: s.labels}
			w.parts[id] = p
		}
		p.seen, p.spacing = now, cmp.Or(s.spacing, p.spacing)
		for _, x := range s.samples {
			if x.T > p.read {
				fresh = append(fresh, reading{x, p})
			}
		}
	}
	slices.SortStableFunc(fresh, func(a, b reading) int { return cmp.Compare(a.T, b.T) })
	return fresh
}

// start is the time before which there are no sums: the first answer begins in the middle of the series, one after the other.
func (w *whole) start(fresh []reading) int64 {
	if w.emitted > 0 || len(fresh) == 0 {
		return 0
	}
	earliest, start := fresh[0].T, int64(0)
	readings := map[*part]int{}
	needed := 1
	if w.as == source.Counter {
		needed = 2
	}
	for _, x := range fresh {
		if readings[x.of]++; readings[x.of] == needed && x.T <= earliest+int64(needed)*w.spacing*3/2 {
			start = max(start, x.T)
		}
	}
	return start
}

// update has a reading count from now on. Readings of a counter less than half a spacing apart are of two servers that scrape it.
func (w *whole) update(x reading) {
	p := x.of
	if p.began == 0 {
		p.began = x.T
	}
	if w.as == source.Counter {
		if p.read > 0 && x.T-p.read < p.spacing/2 {
			return
		}
		p.read = x.T
		rate, ok := p.rate.Next(x.Sample, p.spacing/2)
		if ok {
			p.value, p.known = rate.V, true
		}
		return
	}
	p.read, p.value, p.known = x.T, x.V, true
}

// silence is for how long a series counts on without a reading.
func (w *whole) silence(p *part) int64 {
	return max(leastSilence, silentSpacings*max(p.spacing, w.spacing))
}

// complete returns whether each series that is there has a value. One that has just begun is waited for.
func (w *whole) complete(at int64) bool {
	for _, p := range w.parts {
		if !p.known && p.read > 0 && at-p.read <= 2*w.spacing {
			return false
		}
	}
	return true
}

// sum adds up what counts at a time. Of series that are silent, one gives way to each that began after its last reading: it has been
// replaced.
func (w *whole) sum(at int64) float64 {
	var began, silent []int64
	total := 0.0
	counted := make([]*part, 0, len(w.parts))
	for _, p := range w.parts {
		if p.known && at-p.read <= w.silence(p) {
			counted = append(counted, p)
		}
	}
	// In one order, so that all replicas come to the same sum to the last digit.
	slices.SortFunc(counted, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.read, b.read), cmp.Compare(a.id, b.id))
	})
	for _, p := range counted {
		began = append(began, p.began)
		if at-p.read > max(p.spacing, w.spacing)*replacedAfter/4 {
			silent = append(silent, p.read)
		}
	}
	slices.Sort(began)
	replaced := 0
	for _, last := range silent { // in order of time
		if i := slices.IndexFunc(began, func(t int64) bool { return t > last }); i >= 0 {
			began = slices.Delete(began, i, i+1)
			replaced++
			continue
		}
		break // all later ones have no successor either
	}
	for _, p := range counted[replaced:] { // the silent ones come first
		total += p.value
	}
	return total
}

// silentPart returns a series that counts on without readings, or nil.
func (w *whole) silentPart() *part {
	var found *part
	for _, p := range w.parts {
		quiet := w.emitted - p.read
		if p.known && quiet > 2*max(p.spacing, w.spacing) && quiet <= w.silence(p) && (found == nil || p.read < found.read) {
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

// takeWhole gives the sink the load of the target as a whole. The caller holds the lock.
func (u *subscription) takeWhole(a *answer, t taking) {
	all := slices.Concat(a.series, a.unlabeled)
	if trouble := u.wholeTrouble(a, t, all); trouble != nil {
		u.sink.SourceFailed(trouble)
		return
	}
	if u.whole == nil {
		u.whole = &whole{as: u.config.Type}
	}
	u.begun = true
	if sums := u.whole.take(all, t.spacing, t.now); len(sums) > 0 {
		u.sink.Append(source.WholeTarget, sums...)
		u.group.source.telemetry.samples.Add(float64(len(sums)))
	}
	u.whole.forget(t.now.Add(-2 * u.config.reach()))
	if p := u.whole.silentPart(); p != nil {
		u.sink.SourceFailed(fmt.Errorf("%s: query %.200q: there is no new reading of %s, whose last one counts on for %s at the most",
			u.config.Address, u.config.Query, promapi.Short(p.labels.String()), time.Duration(u.whole.silence(p))*time.Millisecond))
		return
	}
	u.sink.SourceFailed(nil)
}

// wholeTrouble returns why the answer is not the load of the target, or nil. A part of it would be a small load.
func (u *subscription) wholeTrouble(a *answer, t taking, all []*series) error {
	c := &u.config
	switch {
	case a.partial != "":
		return fmt.Errorf("%s: query %.200q: the server warns, so series of the load may be missing: %s", c.Address, c.Query, a.partial)
	case len(all) == 0 && a.foreign > 0:
		return foreignError(c, a.foreign)
	case len(all) == 0:
		return emptyError(c, t.span, "")
	}
	for _, s := range all {
		if s.err != nil {
			return fmt.Errorf("%s: query %.200q: %w", c.Address, c.Query, s.err)
		}
		for _, x := range s.samples {
			if _, err := gate.Number(x.V); err != nil {
				return seriesError(c, s, err)
			}
		}
	}
	return nil
}

// seriesError returns why the load is unknown because of a value of one series.
func seriesError(c *Config, s *series, err error) error {
	impossible, ok := errors.AsType[*gate.Impossible](err)
	if !ok {
		return err
	}
	return fmt.Errorf("%s: query %.200q: a value of a series is %.6g: must be %s (%s)",
		c.Address, c.Query, impossible.Value, impossible.Accept, promapi.Short(s.labels.String()))
}

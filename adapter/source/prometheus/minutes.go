package prometheus

import (
	"maps"
	"math"
	"slices"

	"github.com/foresail/foresail/pipeline"
)

// longestGap is for how many minutes a pod may have no samples without having been away (a restart,
// failed scrapes, an outage of the server): what it carried then is unknown.
const longestGap = 5

// minuteSums adds up the loads of pods by the minute. Pieces of time are taken from the newest to the oldest.
//
// A pod counts from its first whole minute to the minute in which it ends. So a minute in which one
// pod replaces another has the load of one of them, and what a pod does only to start is no load.
type minuteSums struct {
	load    func(v float64) (load float64, clipped bool)
	sums    []minuteSum
	oldest  map[string]pending // by pod: it counts if the pod was there before
	doubled string             // a pod that had several series in a minute; "" without one
}

type minuteSum struct {
	load             float64
	counted, clipped int
	spoiled          bool // a part of the load is not known
}

// pending is a value of a minute of which it is not known yet whether it was the first of its pod.
type pending struct {
	at    int
	value float64
}

func newMinuteSums(minutes int, load func(float64) (float64, bool)) *minuteSums {
	return &minuteSums{load: load, sums: make([]minuteSum, minutes), oldest: map[string]pending{}}
}

// piece is the values of some minutes in a row, by pod.
type piece struct {
	from, to int // the minutes
	of       map[string][]mean
	sums     *minuteSums
}

// mean is that of a minute, if it is known.
type mean struct {
	value float64
	known bool
}

func (m *minuteSums) piece(from, to int) *piece {
	return &piece{from: from, to: to, of: map[string][]mean{}, sums: m}
}

// add adds the value of a pod in a minute of the piece. If there are two values, neither is used.
func (p *piece) add(pod string, at int, v float64) {
	values := p.of[pod]
	if values == nil {
		values = make([]mean, p.to-p.from)
		p.of[pod] = values
	}
	if values[at-p.from].known {
		p.sums.doubled = pod
		p.sums.spoil(at, at+1)
	}
	values[at-p.from] = mean{v, true}
}

// end adds the piece to the sums, in one order of pods, so that they are the same to the bit each time.
func (p *piece) end() {
	m := p.sums
	for _, pod := range slices.Sorted(maps.Keys(p.of)) {
		newer, known := m.oldest[pod]
		for at := p.to - 1; at >= p.from; at-- {
			v := p.of[pod][at-p.from]
			if !v.known {
				continue
			}
			if known && newer.at-at-1 <= longestGap {
				m.spoil(at+1, newer.at)
				m.count(newer)
			}
			newer, known = pending{at, v.value}, true
		}
		m.oldest[pod] = newer
	}
	maps.DeleteFunc(m.oldest, func(_ string, x pending) bool { return x.at-p.from > longestGap })
}

// spoil marks minutes in which a part of the load is not known.
func (m *minuteSums) spoil(from, to int) {
	for at := from; at < to; at++ {
		m.sums[at].spoiled = true
	}
}

func (m *minuteSums) count(x pending) {
	s := &m.sums[x.at]
	load, clipped := m.load(x.value)
	if math.IsNaN(load) || math.IsInf(load, 0) {
		s.spoiled = true
		return
	}
	s.load += load
	s.counted++
	if clipped {
		s.clipped++
	}
}

// minutes returns the loads from a minute on. Idle pods may be below the baseline of the model, and
// the load is not below 0.
func (m *minuteSums) minutes(from int) []pipeline.Minute {
	out := make([]pipeline.Minute, 0, len(m.sums)-from)
	for _, s := range m.sums[from:] {
		x := pipeline.Minute{Mean: math.NaN()}
		if s.counted > 0 && !s.spoiled && !math.IsInf(s.load, 0) {
			x = pipeline.Minute{Mean: max(0, s.load), Clipped: 2*s.clipped >= s.counted && s.clipped > 0}
		}
		out = append(out, x)
	}
	return out
}

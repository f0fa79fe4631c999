package pipeline

import (
	"math"
)

// FloatsOfCheckpoint returns where in a checkpoint the numbers of eight bytes are that are no integers.
func FloatsOfCheckpoint(p *Past) []int {
	l := &locator{encoder: encoder{CheckpointVersion}}
	p.fields(l)
	return l.floats
}

type locator struct {
	encoder
	floats []int
}

func (l *locator) float(v *float64) {
	l.floats = append(l.floats, len(l.encoder))
	l.encoder.float(v)
}

// AddUnless is Add with what Learn has: times of which nothing is learned.
func (p *Past) AddUnless(t int64, load float64, m *Memory, params *Params, unlearned func(t int64) bool) {
	p.become(params)
	p.add(t, load, false, m, unlearned)
}

// LearnedAlone is what has been learned of how a load goes on, of the day and the week, and of jumps. What was asked for at the look before
// is not.
func (p *Past) LearnedAlone() []any {
	learned := p.Clone()
	learned.release()
	return []any{learned.horizons, learned.season.minutes, learned.season.fives, learned.season.jumps.list}
}

// Recalled is what a past knows of the load at a time (ms): the means of the minute and of five minutes around it.
func (p *Past) Recalled(t int64) (ofMinute, ofFive float64) {
	return p.season.minutes.at(t), p.season.fives.at(t)
}

// AddClipped is Add of a load that was at least as much.
func (p *Past) AddClipped(t int64, load float64, m *Memory, params *Params) {
	p.become(params)
	p.add(t, load, true, m, nil)
}

// Hourly is how often jumps of some hours come from one time to another (ms), and their load.
func (p *Past) Hourly(from, to int64) (share, height float64) {
	return p.season.hourly(from, to)
}

// Due is the load of the jumps that a past expects from one time to another (ms).
func (p *Past) Due(from, to int64) float64 { return p.season.jumps.due(from, to) }

// Margins are those of each horizon, and Weights the sums of all weights.
func (p *Past) Margins() (margins, weights [len(horizons)]float64) {
	for i := range p.horizons {
		margins[i] = p.horizons[i].margin
		for _, w := range p.horizons[i].weights {
			weights[i] += w
		}
	}
	return margins, weights
}

// Ordered is how many instances there would be, look after look, if so many are good enough and loads are steps of some time (ms).
func Ordered(step int64, goodEnough ...[2]float64) (ordered []float64) {
	var h horizon
	for _, x := range goodEnough {
		h.order(x[0], x[1], &kind{step: step})
		ordered = append(ordered, h.ordered)
	}
	return ordered
}

// Promised is the margin that the furthest horizon had promised at a time (ms).
func (p *Past) Promised(t int64) float64 {
	last := len(horizons) - 1
	return p.horizons[last].before.at(t, horizons[last], &p.of).margin.value()
}

// Levels are the levels that a description has of steps of so many seconds.
func Levels(means []float64, step float64) []float64 {
	var d description
	if !d.describe(means, 0, step, &Memory{}) {
		return nil
	}
	return d.levels[:]
}

// MarginAt is the margin that a past expects to need in some seconds; NaN while it is not known.
func (p *Past) MarginAt(seconds float64) float64 {
	var d description
	if !d.describe(p.recent.means, p.recent.end, float64(p.recent.step)/1000, &Memory{}) {
		return math.NaN()
	}
	return p.expect(&d, p.recent.end, seconds, p.of.lateness).Margin
}

// Asked are how many instances the looks before asked for, by horizon.
func (p *Past) Asked() (asked []float64) {
	for i := range p.horizons {
		asked = append(asked, p.horizons[i].asked)
	}
	return asked
}

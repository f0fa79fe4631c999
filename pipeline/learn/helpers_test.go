package learn

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/series"
	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// secondly is a load by the second.
type secondly = seriestest.Secondly

const (
	midnight = seriestest.Midnight
	ofDay    = seriestest.OfDay
)

var (
	noisy  = seriestest.Noisy
	bursts = seriestest.Bursts
	daily  = seriestest.Daily
)

// learningParams are the options of the adaptive method by default, of pods that are full at 0.75.
func learningParams() Options {
	return Options{
		Model: series.Model{Kind: series.Linear}, Threshold: 0.75,
		Lateness: 0.01, ScaleDownMargin: 0.05, Interval: time.Second,
	}
}

// follow lets a past see a load for some seconds.
func follow(past *Learned, p Options, from, to int64, load secondly) {
	for s := from; s < to; s++ {
		past.Add((midnight+s)*1000, load(s), p)
	}
}

// followMornings adds a load to a past from nine to eleven on some days. The loads of daily jump at ten.
func followMornings(past *Learned, p Options, from, to int64, load secondly) {
	for day := from; day < to; day++ {
		follow(past, p, day*ofDay+9*3600, day*ofDay+11*3600, load)
	}
}

// floatsOfCheckpoint returns where in a checkpoint the numbers of eight bytes are that are no integers.
func floatsOfCheckpoint(p *Learned) []int {
	l := &locator{encoder: encoder{CheckpointVersion}}
	codeLearned(l, p)
	return l.floats
}

type locator struct {
	encoder
	floats []int
}

func (l *locator) float64(v *float64) {
	l.floats = append(l.floats, len(l.encoder))
	l.encoder.float64(v)
}

// addUnless is Add with what Learn has: times of which nothing is learned.
func (p *Learned) addUnless(t int64, load float64, o Options, unlearned func(t int64) bool) {
	p.setOptions(o)
	p.addLoad(t, load, false, unlearned)
}

// learnedAlone returns what was learned of the load, the day, the week and the jumps, without the count that the
// previous evaluation requested.
func (p *Learned) learnedAlone() []any {
	learned := p.Clone()
	learned.clearRequested()
	return []any{learned.horizons, learned.season.minutes, learned.season.fiveMinutes, learned.season.jumps.list}
}

// recalled returns the known load at a time (ms): the means of the minute and of the five minutes around it.
func (p *Learned) recalled(t int64) (ofMinute, ofFive float64) {
	return p.season.minutes.at(t), p.season.fiveMinutes.at(t)
}

// addClipped is Add of a load that was at least as much.
func (p *Learned) addClipped(t int64, load float64, o Options) {
	p.setOptions(o)
	p.addLoad(t, load, true, nil)
}

// hourly is how often jumps of some hours come from one time to another (ms), and their load.
func (p *Learned) hourly(from, to int64) (share, height float64) {
	return p.season.hourly(from, to)
}

// due is the load of the jumps that a past expects from one time to another (ms).
func (p *Learned) due(from, to int64) float64 { return p.season.jumps.largestDue(from, to) }

// margins are those of each horizon, and Weights the sums of all weights.
func (p *Learned) margins() (margins, weights [len(horizons)]float64) {
	for i := range p.horizons {
		margins[i] = p.horizons[i].margin
		for _, w := range p.horizons[i].weights {
			weights[i] += w
		}
	}
	return margins, weights
}

// ordered is how many instances there would be, look after look, if so many are good enough and
// loads are steps of some time (ms).
func ordered(step int64, goodEnough ...[2]float64) (ordered []float64) {
	var h horizon
	for _, x := range goodEnough {
		h.updateOrdered(x[0], x[1], &loadKey{step: step})
		ordered = append(ordered, h.ordered)
	}
	return ordered
}

// promised is the margin that the furthest horizon had promised at a time (ms).
func (p *Learned) promised(t int64) float64 {
	last := len(horizons) - 1
	return p.horizons[last].planned.slot(t, horizons[last], &p.key).margin.value()
}

// levelsOf are the levels that a description has of steps of so many seconds.
func levelsOf(means []float64, step float64) []float64 {
	var d description
	if !d.computeFeatures(means, 0, step) {
		return nil
	}
	return d.levels[:]
}

// marginAt is the margin that a past expects to need in some seconds; NaN while it is not known.
func (p *Learned) marginAt(seconds float64) float64 {
	var d description
	if !d.computeFeatures(p.recent.means, p.recent.end, float64(p.recent.step)/1000) {
		return math.NaN()
	}
	return p.expect(&d, p.recent.end, seconds, p.key.lateness).Margin
}

// asked are how many instances the looks before asked for, by horizon.
func (p *Learned) asked() (asked []float64) {
	for i := range p.horizons {
		asked = append(asked, p.horizons[i].requested)
	}
	return asked
}

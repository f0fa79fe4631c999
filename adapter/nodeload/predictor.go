package nodeload

import (
	"math"
	"time"

	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// predictor makes the forecast of one series after the other. It is not safe for concurrent use.
//
// The step of a forecast is the interval or, where samples are further apart, so many of them: between two samples there is
// nothing but a straight line, which a trend would follow to the horizon, and which would seem to be foreseen without error.
type predictor struct {
	params    pipeline.Params
	pipelines map[int64]*pipeline.Pipeline // by intervals to a step
	memory    pipeline.Memory
	instance  [1]pipeline.Instance
	scratch   []float64 // of medians
}

func newPredictor(p pipeline.Params) (*predictor, error) {
	made := &predictor{params: p, pipelines: map[int64]*pipeline.Pipeline{}, instance: [1]pipeline.Instance{{Start: math.MinInt64}}}
	_, err := made.stepping(1)
	return made, err
}

// stepping returns the pipeline that has so many intervals to a step.
func (p *predictor) stepping(intervals int64) (*pipeline.Pipeline, error) {
	if made := p.pipelines[intervals]; made != nil {
		return made, nil
	}
	params := p.params
	params.Interval *= time.Duration(intervals)
	params.StaleAfter += params.Interval // the newest tick is up to a step older than the newest sample, whose age is looked at elsewhere
	made, err := pipeline.New(params)
	if err == nil {
		p.pipelines[intervals] = made
	}
	return made, err
}

// fewest is how many steps there must be between the first sample and the last: fewer do not tell how far a forecast is off.
// With as many, the upper estimate is above what comes in 88 to 98 of 100 cases (TestUpperCovers).
const fewest = 4

// fewestSamples is how many samples there must be, as steps may have been missed: two have one line between them, from which
// nothing can differ.
const fewestSamples = 3

// intervals returns how many intervals a step should have, of two samples or more: as many as from one sample to the next. A
// window has ten steps at least.
func (p *predictor) intervals(samples []pipeline.Sample) int64 {
	apart := float64(samples[len(samples)-1].T-samples[0].T) / float64(len(samples)-1)
	n := int64(math.Round(apart / float64(p.params.Interval.Milliseconds())))
	return max(1, min(n, int64(p.params.Window/p.params.Interval)/10))
}

// predict returns what a node will use, by samples that are means over a window, 0 if each is of one moment. ok is false if it
// has been read for too short a time to tell.
func (p *predictor) predict(samples []pipeline.Sample, window time.Duration, now int64) (u snapshot.Use, ok bool) {
	if len(samples) < fewestSamples {
		return u, false
	}
	intervals := p.intervals(samples)
	step := p.params.Interval * time.Duration(intervals)
	first, newest := samples[0], samples[len(samples)-1]
	if newest.T-first.T < fewest*step.Milliseconds() {
		return u, false
	}
	f, err := p.run(intervals, pipeline.Input{Now: now, TargetRose: pipeline.Never}, samples)
	if err != nil {
		return u, false
	}
	ahead := float64(time.Duration(now-f.Tick)*time.Millisecond+f.Horizon+lag(window, step)) / float64(step) // in steps
	predicted := max(0, f.Level+p.steady(f.Trend, samples, step)*ahead)
	sigma := p.deviation(p.memory.Missed()) * spread(p.params.LevelUp, p.params.TrendUp, ahead)
	return snapshot.Use{
		Sampled: time.UnixMilli(newest.T), Window: window,
		Horizon: f.Horizon + time.Duration(now-newest.T)*time.Millisecond,
		Now:     newest.V, Predicted: predicted, Upper: max(newest.V, predicted+confidence*sigma),
	}, true
}

func (p *predictor) run(intervals int64, in pipeline.Input, samples []pipeline.Sample) (pipeline.Forecast, error) {
	made, err := p.stepping(intervals)
	if err != nil {
		return pipeline.Forecast{}, err
	}
	p.instance[0].Samples = samples
	defer func() { p.instance[0].Samples = nil }()
	in.Instances = p.instance[:]
	return made.RunIn(&p.memory, in)
}

// lag is how much later than a mean over a step a mean over a window tells of a change: that of rate(…[1m]) is in its middle
// half a minute old.
func lag(window, step time.Duration) time.Duration { return max(0, window-step) / 2 }

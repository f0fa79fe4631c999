package nodeusage

import (
	"math"
	"time"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

// predictor forecasts one series after the other. It is not safe for concurrent use.
//
// The step of a forecast is the interval, or several intervals if samples are further apart.
// Otherwise the line between two samples would look like a trend that was predicted without error.
type predictor struct {
	params    pipeline.Params
	pipelines map[int64]*pipeline.Pipeline // by intervals per step
	memory    pipeline.Memory
	instance  [1]pipeline.Instance
	scratch   []float64 // for medians
}

func newPredictor(p pipeline.Params) (*predictor, error) {
	made := &predictor{params: p, pipelines: map[int64]*pipeline.Pipeline{},
		instance: [1]pipeline.Instance{{Start: math.MinInt64}}}
	_, err := made.stepping(1)
	return made, err
}

// stepping returns the pipeline with this many intervals per step.
func (p *predictor) stepping(intervals int64) (*pipeline.Pipeline, error) {
	if made := p.pipelines[intervals]; made != nil {
		return made, nil
	}
	params := p.params
	params.Interval *= time.Duration(intervals)
	// the newest tick is up to a step older than the newest sample; the caller checks the age of that
	params.StaleAfter += params.Interval
	made, err := pipeline.New(params)
	if err == nil {
		p.pipelines[intervals] = made
	}
	return made, err
}

// fewest is the minimum number of steps between the first and the last sample. With fewer the error
// of forecasts is unknown. With this many the upper estimate covers 88 to 98 of 100 cases
// (TestUpperCovers).
const fewest = 4

// fewestSamples is the minimum number of samples, because some steps may have none. Two samples lie
// on one line, so they show no error.
const fewestSamples = 3

// intervals returns the number of intervals per step: the mean distance of the samples, of which
// there must be two. A window has at least ten steps.
func (p *predictor) intervals(samples []pipeline.Sample) int64 {
	apart := float64(samples[len(samples)-1].T-samples[0].T) / float64(len(samples)-1)
	n := int64(math.Round(apart / float64(p.params.Interval.Milliseconds())))
	return max(1, min(n, int64(p.params.Window/p.params.Interval)/10))
}

// predict forecasts from samples that are means over window (0: of one moment). ok is false if there are too few.
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
	sigma := p.deviation(p.memory.OneTickErrors()) * spread(p.params.LevelUp, p.params.TrendUp, ahead)
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

// lag is how much later a mean over window shows a change than a mean over step: on average
// rate(…[1m]) is half a minute old.
func lag(window, step time.Duration) time.Duration { return max(0, window-step) / 2 }

// The smoothing of level and trend, for rises and falls.
//
// The defaults of the pipeline (0.2, 0.1, 0.2, 0.1) suit one sample per second. At one per 15 s
// they take minutes to follow a pod that came or went, and the trend oscillates. BenchmarkSmoothing
// compares choices on eleven kinds of load (noise, ramps, steps, a wave, pods that come and go, a
// leak), for samples that are means over 15 s and, in brackets, over 60 s:
//
//	                        mean error   bias          below the upper   of a steady growth
//	                        (1)                        estimate          after 2, 5 min (2)
//	chosen                  0.99 (1.00)  +3.1% (+3.1)  0.948 (0.928)     0.47, 0.87
//	of the pipeline         1.04 (1.07)  +5.3% (+5.1)  0.948 (0.933)     0.44, -0.08
//	0.6, 0.3, 0.05, 0.1     0.97 (0.99)  +2.0% (+2.2)  0.929 (0.896)     0.22, 0.59
//	0.6, 0.3, 0.2, 0.2      1.01 (1.02)  +3.2% (+3.1)  0.964 (0.950)     0.81, 0.99
//	0.5, 0.5, 0.05, 0.05    0.97 (0.99)  +1.9% (+2.3)  0.894 (0.850)     0.17, 0.57
//	1, 1, 0, 0              0.99 (1.01)  +1.2% (+1.4)  0.868 (0.813)     none
//
// (1) relative to that of predicting the present use; (2) the share of the growth up to the horizon that is predicted.
//
// The present use of a node is a good prediction for two minutes later, unless it grows or falls.
// There the chosen values have 0.78 and 0.96 of its error, and 0.92 on the wave. Less trend is
// slightly better on noise, but shows growth too late. Rises are followed faster than falls,
// because a missed rise costs more.
const (
	levelUp, levelDown = 0.6, 0.3
	trendUp, trendDown = 0.1, 0.1
)

// params returns the parameters of the pipeline for one resource of one node. Its decision is not used.
func (o *Options) params() pipeline.Params {
	p := pipeline.HoltParams()
	p.Threshold, p.Max = 1, 1
	p.Interval, p.Window, p.StaleAfter = o.Interval, o.Window, o.forgetAfter()
	p.RedistributionTimeout = 0
	p.LevelUp, p.LevelDown, p.TrendUp, p.TrendDown = levelUp, levelDown, trendUp, trendDown
	p.HorizonMin, p.HorizonMax, p.ReactionDelay = o.Horizon, o.Horizon, 0
	return p
}

// confidence is the distance of the upper estimate from the prediction in standard deviations, so
// that about 95% of later values are below it. It would be 1.64 for a normal distribution and a
// deviation that includes outliers.
const confidence = 1.75

// spread returns the error of a prediction several steps ahead relative to that of a single step:
// the square root of 1 + Σ (α+αβj)² over j from 1 to steps-1, Holt's prediction interval (Hyndman &
// Athanasopoulos, Forecasting: principles and practice, 3rd ed., section 8.7), for any number of
// steps from 1 on.
func spread(alpha, beta, steps float64) float64 {
	h := max(1, steps)
	return math.Sqrt(1 + alpha*alpha*((h-1)+beta*h*(h-1)+beta*beta*h*(h-1)*(2*h-1)/6))
}

// recent and its limits ignore single changes: a pod that starts or ends changes the use of its
// node once. That is no trend, and does not make later forecasts less accurate. So the majority of
// samples decides on both.
//
// recent is the number of newest changes that confirm a trend. A jump is one change, or five where
// samples are means over a minute; a growth is confirmed after six.
const recent = 11

// steady returns the part of a trend (a change per step) that the newest samples confirm: at most
// the median of their changes, and 0 if that has the other sign. There must be two samples.
func (p *predictor) steady(trend float64, all []pipeline.Sample, step time.Duration) float64 {
	newest := all[max(0, len(all)-1-recent):]
	p.scratch = p.scratch[:0]
	for i, s := range newest[1:] {
		steps := float64(s.T-newest[i].T) / float64(step.Milliseconds())
		p.scratch = append(p.scratch, (s.V-newest[i].V)/steps)
	}
	usual := samples.Median(p.scratch)
	if trend > 0 {
		return min(trend, max(0, usual))
	}
	return max(trend, min(0, usual))
}

const (
	// ofNormal is the standard deviation of a normal distribution, in medians of absolute deviations.
	ofNormal = 1.4826
	// outlying caps the error of a forecast that counts for the deviation, in standard deviations.
	outlying = 3.5
)

// deviation returns the winsorized root mean square of the errors of forecasts, in which outliers
// count less; 0 without any.
func (p *predictor) deviation(missed []float64) float64 {
	if len(missed) == 0 {
		return 0
	}
	p.scratch = p.scratch[:0]
	for _, m := range missed {
		p.scratch = append(p.scratch, math.Abs(m))
	}
	most := outlying * ofNormal * samples.Median(p.scratch)
	squares := 0.0
	for _, m := range p.scratch {
		m = min(m, most)
		squares += m * m
	}
	return math.Sqrt(squares / float64(len(missed)))
}

package backtest

import (
	"math"
	"sync"
	"time"

	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/world/fluid"
	"github.com/foresail/foresail/pipeline"
)

// before is what is known of a trace before a run: what was learned of it, and what was recorded.
type before struct {
	past     *pipeline.Learned
	recorded scaler.History
}

// pasts are what is known of a trace before some times in it. They are made once for all runs that
// have use for them.
type pasts struct {
	*Options
	epoch int64 // ms

	mu   sync.Mutex
	made map[learner]map[int64]*pipeline.Learned // by time in the trace (ms)
}

// learner is what a past depends on beside the trace.
type learner struct {
	method              pipeline.Method
	interval            time.Duration
	threshold, lateness float64
	scaleDownMargin     float64
}

// of returns what a setting knows of the trace before a time, as if that were 0; nil with a method
// that learns nothing.
func (p *pasts) of(s *Setting, until int64) *pipeline.Learned {
	params := s.Params
	if params.Method != pipeline.Adaptive {
		return nil
	}
	params.Threshold = s.Target
	by := learner{params.Method, params.Interval, s.Target, params.Lateness, params.ScaleDownMargin}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == nil {
		p.made = map[learner]map[int64]*pipeline.Learned{}
	}
	known := p.made[by]
	if known == nil {
		known = map[int64]*pipeline.Learned{}
		p.made[by] = known
	}
	until = max(0, until)
	if known[until] == nil {
		known[until] = p.learn(&params, known, until)
	}
	return known[until].Shifted(time.Duration(until) * time.Millisecond)
}

// learningEpoch bounds what a late section of a long trace costs: what is known before it is
// learned from the beginning of the previous epoch on. Nothing is remembered for longer than a week
// except some weights, which halve within a day.
const learningEpoch = 8 * day

// learn learns a trace from the epoch before a time on. It goes on from the latest past that is
// known of the same epoch.
func (p *pasts) learn(params *pipeline.Params, known map[int64]*pipeline.Learned, until int64) *pipeline.Learned {
	begins := until / p.epoch * p.epoch
	from, past := max(0, begins-p.epoch), pipeline.NewLearned(params)
	for t, made := range known {
		if begins <= t && t <= until && t > from {
			from, past = t, made
		}
	}
	past = past.Clone()
	options := params.LearnOptions()
	load := p.load()
	if !p.exact() { // a rate: what pods measure of it has the chance of each second
		load = fluid.Recorded(load, p.Seeds[0])
	}
	for t := from; t < until; t += second {
		rate := math.NaN()
		if p.Trace.Known(t) {
			rate = load.Rate(t)
		}
		past.Add(t, rate/p.Capacity, options)
	}
	return past
}

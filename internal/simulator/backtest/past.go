package backtest

import (
	"sync"
	"time"

	"github.com/foresail/foresail/internal/simulator/scaler"
	"github.com/foresail/foresail/pipeline"
)

// before is what is known of a trace before a run: what was learned of it, and what was recorded.
type before struct {
	past     *pipeline.Past
	recorded scaler.History
}

// pasts are what is known of a trace before some times in it. They are made once for all runs that have use for them.
type pasts struct {
	mu   sync.Mutex
	made map[learner]map[int64]*pipeline.Past // by time in the trace (ms)
}

// learner is what a past depends on beside the trace.
type learner struct {
	method              pipeline.Method
	interval            time.Duration
	threshold, lateness float64
}

// past returns what a setting knows of the trace before a time, as if that were 0.
func (p *player) past(s *Setting, until int64) *pipeline.Past {
	params := s.Params
	params.Threshold = s.Target
	of := learner{params.Method, params.Interval, s.Target, params.Lateness}
	p.pasts.mu.Lock()
	defer p.pasts.mu.Unlock()
	if p.pasts.made == nil {
		p.pasts.made = map[learner]map[int64]*pipeline.Past{}
	}
	known := p.pasts.made[of]
	if known == nil {
		known = map[int64]*pipeline.Past{}
		p.pasts.made[of] = known
	}
	until = max(0, until)
	if known[until] == nil {
		known[until] = p.learn(&params, known, until)
	}
	return known[until].Shifted(time.Duration(until) * time.Millisecond)
}

// learn goes on from the latest past that is known.
func (p *player) learn(params *pipeline.Params, known map[int64]*pipeline.Past, until int64) *pipeline.Past {
	from, past := int64(0), pipeline.NewPast(params)
	for t, made := range known {
		if t <= until && t > from {
			from, past = t, made.Clone()
		}
	}
	var m pipeline.Memory
	load := p.load()
	for t := from; t < until; t += second {
		past.Add(t, load.Rate(t)/p.Capacity, &m, params)
	}
	return past
}

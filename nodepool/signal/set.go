package signal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/pipeline"
)

// Set has the signals of one pool. It is safe for concurrent use.
type Set struct {
	options  Options
	seasonal *seasonal // nil: the pool has no seasonal floor

	mu       sync.Mutex
	memory   pipeline.Memory
	nodes    nodeHistory
	sources  []source
	idleOnly []string // resources that requests report to the idle rule, for lack of a signal
	expected int
	roseAt   int64
	last     int64 // time of the last observation (ms)
}

// source is one kind of signal.
type source interface {
	begin(ctx context.Context, now int64) // starts its query in the background
	await(ctx context.Context)            // waits for the answer until ctx ends
	observe(m *pipeline.Memory, t *tick) plan.Signal
	rewind(now int64) // drops what is later than now: the clock was set back
}

// New returns the signals of a pool, or an error that names every query that cannot be sent.
func New(o Options) (*Set, error) {
	var problems []error
	s := &Set{options: o, roseAt: pipeline.Never}
	given := map[string]bool{}
	for i, c := range o.Signals {
		v, err := s.newSource(c)
		if err != nil {
			problems = append(problems, fmt.Errorf("signals[%d].%w", i, err))
		}
		s.sources = append(s.sources, v)
		given[c.Name] = true
	}
	if o.Seasonal != nil {
		var err error
		if s.seasonal, err = newSeasonal(&s.options); err != nil {
			problems = append(problems, fmt.Errorf("seasonal.%w", err))
		}
	}
	for _, name := range []string{CPU, Memory} {
		if !given[name] {
			s.idleOnly = append(s.idleOnly, name)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return s, nil
}

func (s *Set) newSource(c Config) (source, error) {
	if c.Query == nil {
		return newRequests(c, &s.options.Forecast)
	}
	o := &s.options
	timeout := min(o.Forecast.Interval/2, maxTimeout)
	q, err := newQuestion(o, c.Query, o.Forecast.Interval, timeout)
	if err != nil {
		return nil, fmt.Errorf("prometheus.%w", err)
	}
	feed := newFeed(newPoller(q, &o.Forecast), c.Name)
	if c.Query.NodeLabel != "" {
		return newMeasured(c, &o.Forecast, feed)
	}
	return newPooled(c, &o.Forecast, feed)
}

// Observe returns the signals of one cycle in order, followed by those that only the idle rule reads. Its queries may
// continue after it returns, and end with ctx: the context of the pool, not of a cycle.
func (s *Set) Observe(ctx context.Context, o Observation) []plan.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tick(ctx, o)
	s.query(ctx, t.now)
	out := make([]plan.Signal, 0, len(s.sources)+len(s.idleOnly))
	for _, v := range s.sources {
		out = append(out, v.observe(&s.memory, t))
	}
	for _, name := range s.idleOnly {
		out = append(out, idleSignal(name, t))
	}
	return out
}

// query starts the queries of all signals, and waits for their answers for a short while.
func (s *Set) query(ctx context.Context, now int64) {
	for _, v := range s.sources {
		v.begin(ctx, now)
	}
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	for _, v := range s.sources {
		v.await(ctx)
	}
}

// Seasonal returns how many nodes past weeks needed at the hour that launches of now are for; nil if the pool has no
// seasonal floor. It does not wait: the past is queried in the background, once an hour, until ctx ends.
func (s *Set) Seasonal(ctx context.Context, now time.Time, startupTime time.Duration) *plan.Seasonal {
	if s.seasonal == nil {
		return nil
	}
	s.seasonal.refresh(ctx, now)
	return s.seasonal.at(now.Add(s.options.Forecast.horizon(startupTime)))
}

// tick prepares an observation for all signals.
func (s *Set) tick(ctx context.Context, o Observation) *tick {
	t := &tick{Observation: o, now: o.Now.UnixMilli(), log: klog.FromContext(ctx)}
	if t.now < s.last {
		t.log.Info("The clock was set back: dropping later samples", "by", time.Duration(s.last-t.now)*time.Millisecond)
	}
	if t.now <= s.last {
		s.rewind(t.now)
	}
	s.last = t.now
	if o.Expected > s.expected && s.expected > 0 {
		s.roseAt = t.now
	}
	s.expected, t.roseAt = o.Expected, s.roseAt
	t.loaded = s.nodes.update(t.now, o.Workers, o.Leaving)
	s.nodes.trim(t.now - s.options.Forecast.Window.Milliseconds())
	t.periods = s.nodes.periods
	for _, c := range t.loaded {
		if c.works {
			t.working++
		}
	}
	return t
}

// rewind drops what is later than now.
func (s *Set) rewind(now int64) {
	s.nodes.rewind(now)
	if s.roseAt > now {
		s.roseAt = pipeline.Never
	}
	for _, v := range s.sources {
		v.rewind(now)
	}
}

// idleSignal returns the mean share of CPU or memory that pods request on working nodes, for the idle rule.
func idleSignal(name string, t *tick) plan.Signal {
	s := plan.Signal{Name: Requests + "/" + name, InformsOnly: true, CPU: name == CPU, Memory: name == Memory}
	if t.working == 0 {
		s.Err = "no worker is Ready"
		return s
	}
	d := cpu
	if s.Memory {
		d = memory
	}
	for _, c := range t.loaded {
		if c.works {
			s.Now += c.load[d] / float64(t.working)
		}
	}
	s.Known, s.Predicted = true, s.Now
	return s
}

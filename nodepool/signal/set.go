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

// Set is the signals of one pool. It is safe for concurrent use.
type Set struct {
	options  Options
	seasonal *seasonal // nil: the pool does not ask

	mu       sync.Mutex
	memory   pipeline.Memory
	roster   roster
	voices   []listener
	informs  []string // what requests tell the idle rule for want of a signal of that name
	expected int
	roseAt   int64
	last     int64 // when the last observation was (ms)
}

// listener is a signal that observes.
type listener interface {
	begin(ctx context.Context, now int64) // asks, beside, for what has to be asked for
	await(ctx context.Context)            // waits for the answer, at most until ctx ends
	observe(m *pipeline.Memory, t *tick) plan.Signal
	forgetFrom(now int64) // the clock was set back to now: what is later has not been
}

// New returns the signals of a pool, or an error that names every field that is wrong.
func New(o Options) (*Set, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	var problems []error
	s := &Set{options: o, roseAt: pipeline.Never}
	told := map[string]bool{}
	for i, c := range o.Signals {
		v, err := s.listener(c)
		if err != nil {
			problems = append(problems, fmt.Errorf("signals[%d].%w", i, err))
		}
		s.voices = append(s.voices, v)
		told[c.Name] = true
	}
	if o.Seasonal != nil {
		var err error
		if s.seasonal, err = newSeasonal(&s.options); err != nil {
			problems = append(problems, fmt.Errorf("seasonal.%w", err))
		}
	}
	for _, name := range []string{CPU, Memory} {
		if !told[name] {
			s.informs = append(s.informs, name)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return s, nil
}

func (s *Set) listener(c Config) (listener, error) {
	if c.Query == nil {
		return newRequests(c, &s.options.Forecast)
	}
	o := &s.options
	timeout := min(o.Forecast.Interval/2, maxTimeout)
	q, err := newQuestion(o, c.Query, o.Forecast.Interval, timeout)
	if err != nil {
		return nil, err
	}
	feed := newFeed(newPoller(q, &o.Forecast), c.Name)
	if c.Query.NodeLabel != "" {
		return newMeasured(c, &o.Forecast, feed)
	}
	return newPooled(c, &o.Forecast, feed)
}

// Observe takes what one cycle sees, and returns what each signal makes of it, in their order, and then what requests are
// to the idle rule of CPU and memory if no signal is. Its queries go on when it returns, and end with ctx: that is the
// context of the pool, not of a cycle.
func (s *Set) Observe(ctx context.Context, o Observation) []plan.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tick(ctx, o)
	s.ask(ctx, t.now)
	out := make([]plan.Signal, 0, len(s.voices)+len(s.informs))
	for _, v := range s.voices {
		out = append(out, v.observe(&s.memory, t))
	}
	for _, name := range s.informs {
		out = append(out, inform(name, t))
	}
	return out
}

// ask has all signals ask at once and waits for the answers for a short while.
func (s *Set) ask(ctx context.Context, now int64) {
	for _, v := range s.voices {
		v.begin(ctx, now)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, v := range s.voices {
		v.await(ctx)
	}
}

// Seasonal returns what past weeks needed at the hour that launches of now are for; nil if the pool does not ask. It does
// not wait: the past is learned beside, once an hour, by queries that end with ctx.
func (s *Set) Seasonal(ctx context.Context, now time.Time, startupTime time.Duration) *plan.Seasonal {
	if s.seasonal == nil {
		return nil
	}
	s.seasonal.refresh(ctx, now)
	return s.seasonal.at(now.Add(s.options.Forecast.horizon(startupTime)))
}

// tick works out what all signals need to know.
func (s *Set) tick(ctx context.Context, o Observation) *tick {
	t := &tick{Observation: o, now: o.Now.UnixMilli(), log: klog.FromContext(ctx)}
	if t.now < s.last {
		t.log.Info("The clock was set back, and later samples are dropped", "by", time.Duration(s.last-t.now)*time.Millisecond)
	}
	if t.now <= s.last {
		s.forgetFrom(t.now)
	}
	s.last = t.now
	if o.Expected > s.expected && s.expected > 0 {
		s.roseAt = t.now
	}
	s.expected, t.roseAt = o.Expected, s.roseAt
	t.carriers = s.roster.update(t.now, o.Workers, o.Leaving)
	s.roster.forget(t.now - s.options.Forecast.Window.Milliseconds())
	t.spells = s.roster.spells
	for _, c := range t.carriers {
		if c.works {
			t.working++
		}
	}
	return t
}

// forgetFrom forgets what seems not to have been yet.
func (s *Set) forgetFrom(now int64) {
	s.roster.forgetFrom(now)
	if s.roseAt > now {
		s.roseAt = pipeline.Never
	}
	for _, v := range s.voices {
		v.forgetFrom(now)
	}
}

// inform tells the mean share of CPU or memory that pods request of the workers that are Ready and stay.
func inform(name string, t *tick) plan.Signal {
	s := plan.Signal{Name: Requests + "/" + name, InformsOnly: true, CPU: name == CPU, Memory: name == Memory}
	if t.working == 0 {
		s.Err = "no worker is Ready"
		return s
	}
	d := cpu
	if s.Memory {
		d = memory
	}
	for _, c := range t.carriers {
		if c.works {
			s.Now += c.load[d] / float64(t.working)
		}
	}
	s.Known, s.Predicted = true, s.Now
	return s
}

// tick is what an observation comes to for every signal.
type tick struct {
	Observation
	log      klog.Logger
	now      int64     // ms
	roseAt   int64     // when Expected last rose (ms), or pipeline.Never
	carriers []carrier // those of now
	working  int       // of them
	spells   []*spell  // of the window
}

// demand is what the pods request that no node takes.
func (t *tick) demand() loads { return loads{t.Demand.CPU, t.Demand.Memory, t.Demand.Slots} }

// demandOf is the one for a signal, in nodes: that of its resource, or the largest.
func (t *tick) demandOf(name string) float64 {
	switch d := t.demand(); name {
	case CPU:
		return d[cpu]
	case Memory:
		return d[memory]
	default:
		return d.largest()
	}
}

package signal

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/pipeline"
)

// Set is the signals of one pool. It is safe for concurrent use.
type Set struct {
	options Options

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
	observe(m *pipeline.Memory, t *tick) plan.Signal
	forgetFrom(now int64) // the clock was set back to now: what is later has not been
}

// New returns the signals of a pool, or an error that names every field that is wrong.
func New(o Options) (*Set, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Set{options: o, roseAt: pipeline.Never}
	var problems []error
	told := map[string]bool{}
	for _, c := range o.Signals {
		v, err := s.listener(c)
		problems = append(problems, err)
		s.voices = append(s.voices, v)
		told[c.Name] = true
	}
	for _, name := range []string{CPU, Memory} {
		if !told[name] {
			s.informs = append(s.informs, name)
		}
	}
	return s, errors.Join(problems...)
}

func (s *Set) listener(c Config) (listener, error) {
	if c.Query == nil {
		return newRequests(c, &s.options.Forecast)
	}
	return nil, errors.New("not yet")
}

// Observe takes what is seen at one tick, and returns what each signal says to it, in their order, and then what requests
// tell the idle rule of CPU and memory if no signal does.
func (s *Set) Observe(ctx context.Context, o Observation) []plan.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tick(o)
	out := make([]plan.Signal, 0, len(s.voices)+len(s.informs))
	for _, v := range s.voices {
		out = append(out, v.observe(&s.memory, t))
	}
	for _, name := range s.informs {
		out = append(out, inform(name, t))
	}
	return out
}

// Seasonal returns what past weeks needed at the hour that launches of now are for; nil if the pool does not ask.
func (s *Set) Seasonal(ctx context.Context, now time.Time, initTimeout time.Duration) *plan.Seasonal {
	return nil
}

// tick works out what all signals need to know.
func (s *Set) tick(o Observation) *tick {
	t := &tick{Observation: o, now: o.Now.UnixMilli()}
	if t.now < s.last {
		s.options.Logger.Warn("The clock was set back; what was seen after that is forgotten.", "by", time.Duration(s.last-t.now)*time.Millisecond)
	}
	if t.now <= s.last {
		s.forgetFrom(t.now)
	}
	s.last = t.now
	if o.Expected > s.expected && s.expected > 0 {
		s.roseAt = t.now
	}
	s.expected, t.roseAt = o.Expected, s.roseAt
	t.spells = s.roster.update(t.now, o.Workers)
	s.roster.forget(t.now - s.options.Forecast.Window.Milliseconds())
	t.measure()
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

// inform tells the mean share of CPU or memory that pods request of the workers.
func inform(name string, t *tick) plan.Signal {
	s := plan.Signal{Name: Requests + "/" + name, NoVote: true, CPU: name == CPU, Memory: name == Memory}
	if len(t.shares) == 0 {
		s.Err = "no worker is Ready"
		return s
	}
	d := cpu
	if s.Memory {
		d = memory
	}
	s.Known, s.Now = true, t.total[d]/float64(len(t.shares))
	s.Predicted = s.Now
	return s
}

// tick is what an observation comes to for every signal.
type tick struct {
	Observation
	now     int64    // ms
	roseAt  int64    // when Expected last rose (ms), or pipeline.Never
	spells  []*spell // of the workers, in their order; nil: it is not Ready
	shares  map[*spell]loads
	total   loads // of shares
	carried loads // by workers that are not Ready, and by those that leave: it will be on others soon
}

// measure works out the shares.
func (t *tick) measure() {
	t.shares = make(map[*spell]loads, len(t.Workers))
	for i := range t.Workers {
		load := share(&t.Workers[i])
		if s := t.spells[i]; s != nil {
			t.shares[s] = load
			t.total.add(load)
		} else {
			t.carried.add(load)
		}
	}
	for i := range t.Leaving {
		t.carried.add(share(&t.Leaving[i]))
	}
}

// demand is what the pods request that no node takes.
func (t *tick) demand() loads { return loads{t.Demand.CPU, t.Demand.Memory, t.Demand.Slots} }

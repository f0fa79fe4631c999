package signal

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/pipeline"
)

// pooled is a signal of which Prometheus tells one value for the whole pool.
//
// A sum is taken to be shared equally by the Ready workers, and a node's worth of pods that no node takes demands one
// threshold more. A level is the same for all of them; above the threshold the pool needs a worker more than it has, below
// it with the margin one less would do, and nobody knows how many after that.
type pooled struct {
	*voice
	feed
	level   bool
	samples samples.Series
	scaled  []pipeline.Sample
	buffer  []pipeline.Instance
}

func newPooled(c Config, f *Forecast, fed feed) (*pooled, error) {
	v, err := newVoice(c, f.params(c.Threshold))
	if err != nil {
		return nil, err
	}
	return &pooled{voice: v, feed: fed, level: c.Query.Value == v1alpha1.PoolValueLevel}, nil
}

func (s *pooled) observe(m *pipeline.Memory, t *tick) plan.Signal {
	s.receive(t.log, s.take)
	s.samples.Trim(t.now - s.window)
	if s.level {
		return s.observeLevel(m, t)
	}
	s.note(t.now, t.demandOf(s.config.Name)*s.config.Threshold)
	r, err := s.run(m, pipeline.Input{Instances: s.shared(max(1, t.working)), Demand: s.demand}, t)
	return s.tell(r, s.because(err), t)
}

// shared returns n instances that share the value equally.
func (s *pooled) shared(n int) []pipeline.Instance {
	s.scaled = s.scaled[:0]
	for _, x := range s.samples {
		s.scaled = append(s.scaled, pipeline.Sample{T: x.T, V: x.V / float64(n)})
	}
	for len(s.buffer) < n {
		s.buffer = append(s.buffer, pipeline.Instance{ID: strconv.Itoa(len(s.buffer)), Start: math.MinInt64})
	}
	for i := range s.buffer[:n] {
		s.buffer[i].Samples = s.scaled
	}
	return s.buffer[:n]
}

func (s *pooled) observeLevel(m *pipeline.Memory, t *tick) plan.Signal {
	f, err := s.pipeline.RunIn(m, pipeline.Input{
		Now: t.now, Target: 1, TargetRose: pipeline.Never, StartupTime: t.StartupTime,
		Instances: []pipeline.Instance{{Start: math.MinInt64, Samples: s.samples}},
	})
	if err != nil {
		return s.tellLevel(reading{}, s.because(err), t)
	}
	p := s.pipeline.Params()
	r := reading{now: f.Level, predicted: f.Total, horizon: f.Horizon, want: t.Expected, fits: t.Expected, needs: t.before()}
	switch {
	case f.Total > p.Threshold:
		r.want++
		r.needs = r.want
	case max(f.Level, f.Total) < p.Threshold/(1+p.ScaleDownMargin):
		r.want = max(0, t.Expected-1)
		r.fits = r.want
	}
	return s.tellLevel(r, nil, t)
}

func (s *pooled) tellLevel(r reading, err error, t *tick) plan.Signal {
	out := s.tell(r, err, t)
	out.Level = true
	return out
}

// before is how many workers a level is the answer to. Those that were launched in place of others, which are there still, are no
// part of what it needs: or each worker that is replaced would leave one less.
func (t *tick) before() int {
	if t.Replacing > 0 {
		return min(t.Replacing, t.Expected)
	}
	return t.Expected
}

var errNoSeries = errors.New("returns no series: must return one")

// take adds an answer.
func (s *pooled) take(f *flight) error {
	if len(f.lines) == 0 {
		return fmt.Errorf("%s: query %.200q %w", s.Text.Address, s.Text.Query, errNoSeries)
	}
	samples, err := nodequery.Join(f.lines)
	if err != nil {
		return fmt.Errorf("%s: query %.200q returns %w, or nodeLabel must be given", s.Text.Address, s.Text.Query, err)
	}
	s.samples = extend(s.samples, samples)
	return nil
}

func (s *pooled) forgetFrom(now int64) {
	s.feed.forgetFrom(now)
	s.samples = s.samples.Before(now)
}

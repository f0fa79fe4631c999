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

// pooled is a signal with one value of Prometheus for the whole pool.
//
// A sum is assumed to be shared equally by the Ready workers, and a node's worth of unschedulable pods demands one more
// threshold. A level is the same for all workers: above the threshold the pool needs one more worker, below the
// threshold with the margin one less; it is unknown how many after that.
type pooled struct {
	*signalState
	feed
	level   bool
	samples samples.Series
	scaled  []pipeline.Sample
	buffer  []pipeline.Instance
}

func newPooled(c Config, f *Forecast, fed feed) (*pooled, error) {
	v, err := newSignalState(c, f.params(c.Threshold))
	if err != nil {
		return nil, err
	}
	return &pooled{signalState: v, feed: fed, level: c.Query.Value == v1alpha1.PoolValueLevel}, nil
}

func (s *pooled) observe(m *pipeline.Memory, t *tick) plan.Signal {
	s.receive(t.log, s.add)
	s.samples.Trim(t.now - s.window)
	if s.level {
		return s.observeLevel(m, t)
	}
	s.recordDemand(t.now, t.demandOf(s.config.Name)*s.config.Threshold)
	r, err := s.run(m, pipeline.Input{Instances: s.shared(max(1, t.working)), Demand: s.demand}, t)
	if err == nil {
		s.learn(m)
	}
	return s.report(r, s.withCause(err), t)
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
		return s.reportLevel(reading{}, s.withCause(err), t)
	}
	p := s.pipeline.Params()
	r := reading{
		now: f.Level, predicted: f.Total, horizon: f.Horizon,
		desired: t.Expected, fits: t.Expected, needs: t.levelTarget(),
	}
	switch {
	case f.Total > p.Threshold:
		r.desired++
		r.needs = r.desired
	case max(f.Level, f.Total) < p.Threshold/(1+p.ScaleDownMargin):
		r.desired = max(0, t.Expected-1)
		r.fits = r.desired
	}
	return s.reportLevel(r, nil, t)
}

func (s *pooled) reportLevel(r reading, err error, t *tick) plan.Signal {
	out := s.report(r, err, t)
	out.Level = true
	return out
}

var errNoSeries = errors.New("returns no series: must return one")

// add adds the samples of an answer.
func (s *pooled) add(f *pendingQuery) error {
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

func (s *pooled) rewind(now int64) {
	s.feed.rewind(now)
	s.past.Rewind(now)
	s.samples = s.samples.Before(now)
}

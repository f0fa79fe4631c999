package signal

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/pipeline"
)

// measured is a signal with a value of Prometheus for each worker.
//
// An unschedulable pod is assumed to load a worker as much as workers should be loaded: a node's worth of pods demands
// one threshold.
type measured struct {
	*signalState
	feed
	label     model.LabelName
	forecast  Forecast
	samples   map[string]samples.Series // by nodeKey
	history   int64                     // the history is incomplete before (ms)
	unmatched []string                  // values of the label that match no worker
	buffer    []pipeline.Instance
}

func newMeasured(c Config, f *Forecast, fed feed) (*measured, error) {
	v, err := newSignalState(c, f.params(c.Threshold))
	if err != nil {
		return nil, err
	}
	return &measured{
		signalState: v, feed: fed, label: model.LabelName(c.Query.NodeLabel), forecast: *f,
		samples: map[string]samples.Series{},
	}, nil
}

func (s *measured) observe(m *pipeline.Memory, t *tick) plan.Signal {
	s.receive(t.log, func(f *pendingQuery) error { return s.add(f, t) })
	s.trim(t)
	demand := t.demandOf(s.config.Name) * s.config.Threshold
	s.recordDemand(t.now, demand)
	if len(t.loaded) == 0 {
		return s.report(s.demandOnly(demand, t), nil, t)
	}
	silent, err := s.silentWorkers(t)
	if err != nil {
		return s.report(reading{}, s.withCause(err), t)
	}
	s.buffer = s.buffer[:0]
	for _, x := range t.periods {
		s.buffer = append(s.buffer, pipeline.Instance{ID: x.id, Start: x.start, End: x.end, Samples: s.samples[x.node]})
	}
	r, err := s.run(m, pipeline.Input{Instances: s.buffer, Demand: s.demand, Since: s.history}, t)
	clear(s.buffer)
	if err == nil && silent == "" {
		s.learn(m)
	}
	out := s.report(r, s.withCause(err), t)
	out.Silent = silent
	return out
}

// demandOnly returns the forecast of a pool without workers: the demand alone, as nothing can be measured.
func (s *measured) demandOnly(demand float64, t *tick) reading {
	return reading{
		predicted: demand, horizon: s.forecast.horizon(t.StartupTime),
		fits: s.fits(demand), needs: s.needs(demand),
		desired: int(math.Ceil(demand/s.config.Threshold - roundingSlack)),
	}
}

// add adds the samples of an answer to their nodes.
func (s *measured) add(f *pendingQuery, t *tick) error {
	nodes := make([]nodequery.Node, 0, len(t.Workers)+len(t.Leaving))
	for _, n := range slices.Concat(t.Workers, t.Leaving) {
		nodes = append(nodes, nodequery.Of(n.Object))
	}
	byNode, unmatched := nodequery.NewMatcher(nodes).Sort(f.lines, s.label)
	joined := make(map[string][]pipeline.Sample, len(byNode))
	for key, lines := range byNode {
		samples, err := nodequery.Join(lines)
		if err != nil {
			name, _, _ := strings.Cut(key, "/")
			return fmt.Errorf("%s: query %.200q: node %s has %w", s.Text.Address, s.Text.Query, name, err)
		}
		joined[key] = samples
	}
	for key, samples := range joined {
		s.samples[key] = extend(s.samples[key], samples)
	}
	s.recordUnmatched(unmatched, f)
	return nil
}

// recordUnmatched records series that match no worker. A first answer may have series of workers that were gone before
// this process began: without them the load of that time is too small and would seem to rise. They cannot be
// distinguished from other nodes' series, so the history begins when the last of these had ended. Series that have not
// ended belong to others.
func (s *measured) recordUnmatched(unmatched []nodequery.Line, f *pendingQuery) {
	names := map[string]bool{}
	step := s.Step.Milliseconds()
	for _, l := range unmatched {
		names[string(l.Labels[s.label])] = true
		if n := len(l.Samples); f.first && n > 0 && l.Samples[n-1].T < f.to-step {
			s.history = max(s.history, l.Samples[n-1].T+step)
		}
	}
	s.unmatched = slices.Sorted(maps.Keys(names))
}

// trim drops samples before the window, and nodes without any in it.
func (s *measured) trim(t *tick) {
	oldest := t.now - s.window
	for key, samples := range s.samples {
		if n := len(samples); n == 0 || samples[n-1].T < oldest {
			delete(s.samples, key)
		} else {
			samples.Trim(oldest)
			s.samples[key] = samples
		}
	}
}

var errMissing = errors.New("more than half of the workers have no fresh samples")

// silentWorkers returns the Ready workers without a sample in the whole window, whose load is unknown; "" if there are
// none. It is an error if more than half of the workers have no fresh sample, as the others do not represent them. New
// workers are not expected to have samples.
func (s *measured) silentWorkers(t *tick) (string, error) {
	limit := s.forecast.staleAfter().Milliseconds()
	var unknown, stale []string
	expected := 0
	for _, c := range t.loaded {
		if !c.works || t.now-c.period.start < limit {
			continue
		}
		expected++
		samples := s.samples[c.period.node]
		if len(samples) == 0 {
			unknown = append(unknown, c.Object.Name)
		}
		if len(samples) == 0 || t.now-samples[len(samples)-1].T > limit {
			stale = append(stale, c.Object.Name)
		}
	}
	of := func(names []string) string {
		slices.Sort(names)
		return fmt.Sprintf("%d of %d, such as %s", len(names), expected, promapi.Some(names))
	}
	if 2*len(stale) > expected {
		err := fmt.Errorf("%w: %s", errMissing, of(stale))
		if len(s.unmatched) > 0 {
			err = fmt.Errorf("%w; the label %s names other nodes: %s", err, s.label, promapi.Some(s.unmatched))
		}
		return "", err
	}
	if len(unknown) == 0 {
		return "", nil
	}
	return of(unknown) + fmt.Sprintf(", have had no samples for %s", s.forecast.Window), nil
}

func (s *measured) rewind(now int64) {
	s.feed.rewind(now)
	s.past.Rewind(now)
	s.history = min(s.history, now)
	for key, samples := range s.samples {
		s.samples[key] = samples.Before(now)
	}
}

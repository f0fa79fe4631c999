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

// measured is a signal of which Prometheus tells a value for each worker.
//
// A pod that no node takes will, as far as anybody knows, load a worker as much as workers are to be loaded: a node's
// worth of pods demands one threshold.
type measured struct {
	*voice
	feed
	label    model.LabelName
	forecast Forecast
	samples  map[string]samples.Series // by nodeKey
	history  int64                     // the history before is not whole (ms)
	strange  []string                  // some values of the label that are no worker's
	buffer   []pipeline.Instance
}

func newMeasured(c Config, f *Forecast, fed feed) (*measured, error) {
	v, err := newVoice(c, f.params(c.Threshold))
	if err != nil {
		return nil, err
	}
	return &measured{voice: v, feed: fed, label: model.LabelName(c.Query.NodeLabel), forecast: *f, samples: map[string]samples.Series{}}, nil
}

func (s *measured) observe(m *pipeline.Memory, t *tick) plan.Signal {
	s.receive(t.log, func(f *flight) error { return s.take(f, t) })
	s.tidy(t)
	demand := t.demandOf(s.config.Name) * s.config.Threshold
	s.note(t.now, demand)
	if len(t.carriers) == 0 {
		return s.tell(s.without(demand, t), nil, t)
	}
	silent, err := s.silent(t)
	if err != nil {
		return s.tell(reading{}, s.because(err), t)
	}
	s.buffer = s.buffer[:0]
	for _, x := range t.spells {
		s.buffer = append(s.buffer, pipeline.Instance{ID: x.id, Start: x.start, End: x.end, Samples: s.samples[x.node]})
	}
	r, err := s.run(m, pipeline.Input{Instances: s.buffer, Demand: s.demand, Since: s.history}, t)
	clear(s.buffer)
	out := s.tell(r, s.because(err), t)
	out.Silent = silent
	return out
}

// without is the forecast of a pool that has no workers: the demand alone, as nothing can be measured.
func (s *measured) without(demand float64, t *tick) reading {
	return reading{
		predicted: demand, horizon: s.forecast.horizon(t.StartupTime), fits: s.fits(demand), needs: s.needs(demand),
		want: int(math.Ceil(demand/s.config.Threshold - roundingSlack)),
	}
}

// take sorts an answer by nodes.
func (s *measured) take(f *flight, t *tick) error {
	nodes := make([]nodequery.Node, 0, len(t.Workers)+len(t.Leaving))
	for _, n := range slices.Concat(t.Workers, t.Leaving) {
		nodes = append(nodes, nodequery.Of(n.Object))
	}
	byNode, strange := nodequery.NewMatcher(nodes).Sort(f.lines, s.label)
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
	s.remember(strange, f)
	return nil
}

// remember notes what to say of series that are no worker's. A first answer may have some of workers that had gone before
// this process began; without them the load of that time is too small, and would seem to have risen to what it is. Whose
// they were cannot be told, so the history begins when the last of them had ended. The others live, and are strangers'.
func (s *measured) remember(strange []nodequery.Line, f *flight) {
	names := map[string]bool{}
	step := s.Step.Milliseconds()
	for _, l := range strange {
		names[string(l.Labels[s.label])] = true
		if n := len(l.Samples); f.first && n > 0 && l.Samples[n-1].T < f.to-step {
			s.history = max(s.history, l.Samples[n-1].T+step)
		}
	}
	s.strange = slices.Sorted(maps.Keys(names))
}

// tidy forgets what is before the window, and nodes that have been gone for as long.
func (s *measured) tidy(t *tick) {
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

// silent tells of which workers nothing is known: they are Ready, and have not had a sample in the whole window, so that there is
// no load that they could be taken to carry still. "" is none. If more than half of the workers have had none lately, the others
// cannot speak for them, and that is an error. Those that have just come are not expected to have any.
func (s *measured) silent(t *tick) (string, error) {
	limit := s.forecast.staleAfter().Milliseconds()
	var unknown, stale []string
	expected := 0
	for _, c := range t.carriers {
		if !c.works || t.now-c.spell.start < limit {
			continue
		}
		expected++
		samples := s.samples[c.spell.node]
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
		if len(s.strange) > 0 {
			err = fmt.Errorf("%w; the label %s names other nodes: %s", err, s.label, promapi.Some(s.strange))
		}
		return "", err
	}
	if len(unknown) == 0 {
		return "", nil
	}
	return of(unknown) + fmt.Sprintf(", have had no samples for %s", s.forecast.Window), nil
}

func (s *measured) forgetFrom(now int64) {
	s.feed.forgetFrom(now)
	s.history = min(s.history, now)
	for key, samples := range s.samples {
		s.samples[key] = samples.Before(now)
	}
}

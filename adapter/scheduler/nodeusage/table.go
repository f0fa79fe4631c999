package nodeusage

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

// table has the samples and forecasts of all nodes. It is not safe for concurrent use.
type table struct {
	limits    limits
	predictor *predictor
	nodes     map[string]*node // by name
	rejected  func(rejection)  // receives the reason of each sample that is not taken
}

// node has the series of one node.
type node struct {
	uid         types.UID // "" while unknown
	cpu, memory series
}

func (n *node) of(r Resource) *series {
	if r == CPU {
		return &n.cpu
	}
	return &n.memory
}

func newTable(o *Options, rejected func(rejection)) (*table, error) {
	p, err := newPredictor(o.params())
	if err != nil {
		return nil, err
	}
	step := o.Interval.Milliseconds()
	window := o.Window.Milliseconds() + step // the first tick is interpolated from the sample before it
	return &table{
		limits: limits{
			ahead: step, window: window, gap: o.StaleAfter.Milliseconds(), forget: o.forgetAfter().Milliseconds(),
			most: int(window/step) + spare,
		},
		predictor: p, nodes: map[string]*node{}, rejected: rejected,
	}, nil
}

// spare is how many samples are kept in addition to one per step, because samples do not come exactly at ticks.
const spare = 8

// update adds readings. nodes are the present Nodes, nil if unknown.
func (t *table) update(now time.Time, readings []Reading, nodes []nodequery.Node) {
	t.limits.now = now.UnixMilli()
	present := presentOf(nodes)
	if nodes != nil {
		t.retain(present)
	}
	for i := range readings {
		r := &readings[i]
		of, ok := present[r.Node]
		if nodes == nil || ok {
			t.take(r, of)
		}
	}
	for name, n := range t.nodes {
		n.cpu.tidy(&t.limits)
		n.memory.tidy(&t.limits)
		if len(n.cpu.samples)+len(n.memory.samples) == 0 {
			delete(t.nodes, name)
		}
	}
}

func presentOf(nodes []nodequery.Node) map[string]*nodequery.Node {
	present := make(map[string]*nodequery.Node, len(nodes))
	for i := range nodes {
		present[nodes[i].Name] = &nodes[i]
	}
	return present
}

// take adds a reading of a Node, nil if unknown. Samples before its creation belong to an earlier Node of the name.
func (t *table) take(r *Reading, of *nodequery.Node) {
	if r.Node == "" || r.Resource != CPU && r.Resource != Memory {
		return
	}
	n := t.nodes[r.Node]
	for _, x := range r.Samples {
		why := t.limits.judge(x, r.Resource)
		if of != nil && x.T < of.Created.UnixMilli() {
			why = tooOld
		}
		if why != "" {
			t.rejected(why)
			continue
		}
		if n == nil {
			n = &node{}
			if of != nil {
				n.uid = of.UID
			}
			t.nodes[r.Node] = n
		}
		s := n.of(r.Resource)
		s.add(x, &t.limits)
		if x.T == s.samples[len(s.samples)-1].T {
			s.window = max(0, r.Window)
		}
	}
}

// retain drops what belongs to no present Node.
func (t *table) retain(present map[string]*nodequery.Node) {
	for name, n := range t.nodes {
		of := present[name]
		if of == nil || n.uid != "" && n.uid != of.UID {
			delete(t.nodes, name)
			continue
		}
		n.uid = of.UID
	}
}

// loads returns the forecasts of all nodes. It recomputes those of changed series.
func (t *table) loads() map[string]snapshot.NodeLoad {
	out := make(map[string]snapshot.NodeLoad, len(t.nodes))
	for name, n := range t.nodes {
		t.predict(&n.cpu, n.cpu.window)
		t.predict(&n.memory, 0) // it is of one moment within its window
		out[name] = snapshot.NodeLoad{CPU: n.cpu.use, Memory: n.memory.use}
	}
	return out
}

// predict updates the forecast of a series if it has new samples. window is the time that its samples are means over.
func (t *table) predict(s *series, mean time.Duration) {
	if !s.changed {
		return
	}
	s.changed = false
	use, ok := t.predictor.predict(s.unbroken(t.limits.gap), mean, t.limits.now)
	if ok {
		use.Window = s.window
	}
	s.use = use
}

// series has the samples of one resource of one node.
type series struct {
	samples samples.Series // of the window, and a few before
	window  time.Duration  // of the newest sample
	changed bool           // since the last forecast
	use     snapshot.Use
}

// limits are the bounds of acceptable samples.
type limits struct {
	now    int64 // ms
	ahead  int64 // how far after now it may be dated, as clocks differ (ms)
	window int64 // how long samples are kept (ms)
	gap    int64 // the longest gap between samples that is bridged (ms)
	forget int64 // the age of the newest sample at which all are forgotten (ms)
	most   int   // the maximum number of samples
}

// rejection is why a sample was rejected, "" if it was accepted.
type rejection string

const (
	badValue rejection = "value" // not a number, negative, or more than any node has
	future   rejection = "future"
	tooOld   rejection = "old"
)

func rejections() []rejection { return []rejection{badValue, future, tooOld} }

// most is more than any node has of a resource.
func (r Resource) most() float64 {
	if r == CPU {
		return 1e6 // cores
	}
	return 1e18 // bytes
}

// judge returns why a sample is rejected.
func (l *limits) judge(s pipeline.Sample, r Resource) rejection {
	switch {
	case !(s.V >= 0 && s.V <= r.most()): // a NaN is neither
		return badValue
	case s.T > l.now+l.ahead:
		return future
	case s.T <= l.now-l.window:
		return tooOld
	default:
		return ""
	}
}

// add inserts an accepted sample. One with the time of another replaces it. A full series drops its oldest sample.
func (s *series) add(x pipeline.Sample, l *limits) {
	if at := s.samples.From(x.T); at < len(s.samples) && s.samples[at] == x {
		return
	}
	s.samples.Add(x)
	if len(s.samples) > l.most {
		s.samples = s.samples[:copy(s.samples, s.samples[1:])]
	}
	s.changed = true
}

// tidy drops samples before the window and in the future, and all of them if the newest is too old.
func (s *series) tidy(l *limits) {
	known := s.samples.Before(l.now + l.ahead + 1)
	s.changed = s.changed || len(known) < len(s.samples)
	s.samples = known
	if n := len(known); n == 0 || l.now-known[n-1].T > l.forget {
		*s = series{samples: known[:0]}
		return
	}
	s.samples.Trim(l.now - l.window + 1)
}

// unbroken returns the samples after the last gap that is too long to bridge.
func (s *series) unbroken(gap int64) []pipeline.Sample {
	for i := len(s.samples) - 1; i > 0; i-- {
		if s.samples[i].T-s.samples[i-1].T > gap {
			return s.samples[i:]
		}
	}
	return s.samples
}

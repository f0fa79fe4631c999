package nodeload

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/internal/nodequery"
)

// table is what is known of all nodes. It is not safe for concurrent use.
type table struct {
	limits    limits
	predictor *predictor
	nodes     map[string]*node // by name
	refused   func(refusal)    // is told of samples that are not taken
}

// node is what is known of one node.
type node struct {
	uid         types.UID // "" while it is not known
	cpu, memory series
}

func (n *node) of(r Resource) *series {
	if r == CPU {
		return &n.cpu
	}
	return &n.memory
}

func newTable(o *Options, refused func(refusal)) (*table, error) {
	p, err := newPredictor(o.params())
	if err != nil {
		return nil, err
	}
	step := o.Interval.Milliseconds()
	window := o.Window.Milliseconds() + step // the first tick is interpolated from the sample before it
	return &table{
		limits: limits{
			ahead: step, window: window, gap: o.StaleAfter.Milliseconds(), forget: o.forgetAfter().Milliseconds(), most: int(window/step) + spare,
		},
		predictor: p, nodes: map[string]*node{}, refused: refused,
	}, nil
}

// spare is how many samples of a node are kept beyond one for each step, as they do not come at ticks.
const spare = 8

// update takes what was read by now, and the Nodes there are, nil if that is not known.
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

// take takes what was read of a Node, nil if it is not known. What was before its creation is of another of that name.
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
			t.refused(why)
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
		if x.T == s.newest().T {
			s.window = max(0, r.Window)
		}
	}
}

// retain forgets what is of no Node, or of one that had the name before.
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

// loads returns what all nodes will use. Forecasts are made of series that have changed.
func (t *table) loads() map[string]snapshot.NodeLoad {
	out := make(map[string]snapshot.NodeLoad, len(t.nodes))
	for name, n := range t.nodes {
		t.predict(&n.cpu, n.cpu.window)
		t.predict(&n.memory, 0) // it is of one moment, wherever in its window that is
		out[name] = snapshot.NodeLoad{CPU: n.cpu.use, Memory: n.memory.use}
	}
	return out
}

// predict makes the forecast of a series whose samples are means over a time, if there is something new.
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

package nodeusage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/internal/promapi"
)

// DefaultNodeLabel is the label that kube-prometheus gives the metrics of kubelets.
const DefaultNodeLabel = "node"

// PrometheusOptions configure a Prometheus source. API, Address and both queries are required.
type PrometheusOptions struct {
	API     v1.API // of the server
	Address string // of the server, as errors name it

	// PromQL for the cores and the bytes that each node uses; doc.go has examples. The window of a
	// reading is the LookBack of its query.
	CPUQuery, MemoryQuery string
	// NodeLabel names a Node by its name or one of its addresses, with or without a port. "" = DefaultNodeLabel.
	NodeLabel string
	// Nodes returns the present Nodes, nil while they are unknown: nothing is queried then. Without
	// this function the values of the label are names of Nodes.
	Nodes func() []nodequery.Node

	Interval time.Duration // between samples; 0 = 15 s
	Timeout  time.Duration // of a query; 0 = 10 s
}

// Prometheus queries a Prometheus server. Its first read covers the whole window, so that there are forecasts at once.
type Prometheus struct {
	nodes   func() []nodequery.Node
	label   model.LabelName
	queries []*query
}

// NewPrometheus returns a source that has queried nothing yet.
func NewPrometheus(o PrometheusOptions) *Prometheus {
	interval := cmp.Or(o.Interval, defaultInterval)
	ask := func(r Resource, expr string) *query {
		return &query{
			Question: nodequery.New(o.API, o.Address, expr, interval, cmp.Or(o.Timeout, readTimeout)),
			resource: r, back: LookBack(expr), window: (defaultWindow + interval).Milliseconds(),
		}
	}
	return &Prometheus{
		nodes: o.Nodes, label: model.LabelName(cmp.Or(o.NodeLabel, DefaultNodeLabel)),
		queries: []*query{ask(CPU, o.CPUQuery), ask(Memory, o.MemoryQuery)},
	}
}

// rangeOf matches the range of a range vector or of a subquery.
var rangeOf = regexp.MustCompile(`\[\s*([0-9][0-9a-z]*)\s*[\]:]`)

// LookBack returns the longest range in an expression; 0 if it has none.
//
// Without a range a server returns the last sample of a series for five minutes (its
// --query.lookback-delta) with the time of the query. An old sample then looks fresh, and seems to
// include pods that came after it.
func LookBack(expr string) (longest time.Duration) {
	for _, match := range rangeOf.FindAllStringSubmatch(expr, -1) {
		longest = max(longest, rangeFrom(match[1]))
	}
	return longest
}

// rangeFrom parses a range: a duration, or a number of seconds. It returns 0 for anything else.
func rangeFrom(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0
	}
	return time.Duration(d)
}

var errNodesUnknown = errors.New("which Nodes there are is not known yet")

// Read implements Source. If one query fails, it returns the readings of the other.
func (p *Prometheus) Read(ctx context.Context, now time.Time) ([]Reading, error) {
	sort := byLabel
	if p.nodes != nil {
		nodes := p.nodes()
		if nodes == nil {
			return nil, errNodesUnknown
		}
		sort = byNodes(nodes)
	}
	answers := make([]answer, len(p.queries))
	var asking sync.WaitGroup
	for i, q := range p.queries {
		asking.Go(func() { answers[i] = q.read(ctx, now.UnixMilli(), p.label, sort) })
	}
	asking.Wait()
	var out []Reading
	var errs []error
	for i, a := range answers {
		out = append(out, a.readings...)
		if a.err != nil && (i == 0 || errs == nil || a.err.Error() != errs[0].Error()) {
			errs = append(errs, a.err)
		}
	}
	return out, together(errs)
}

// together joins errors in one line.
func together(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	default:
		return fmt.Errorf("%w; %w", errs[0], together(errs[1:]))
	}
}

// sorter groups the lines of an answer by the Nodes that a label names. Strange lines belong to none.
type sorter func(lines []nodequery.Line,
	label model.LabelName) (byName map[string][]nodequery.Line, strange []nodequery.Line)

// byLabel uses the values of the label as names of Nodes.
func byLabel(lines []nodequery.Line,
	label model.LabelName) (byName map[string][]nodequery.Line, strange []nodequery.Line) {
	byName = make(map[string][]nodequery.Line, len(lines))
	for _, l := range lines {
		if name := string(l.Labels[label]); name != "" {
			byName[name] = append(byName[name], l)
		} else {
			strange = append(strange, l)
		}
	}
	return byName, strange
}

func byNodes(nodes []nodequery.Node) sorter {
	match := nodequery.NewMatcher(nodes)
	return func(lines []nodequery.Line,
		label model.LabelName) (byName map[string][]nodequery.Line, strange []nodequery.Line) {
		byKey, strange := match.Sort(lines, label)
		byName = make(map[string][]nodequery.Line, len(byKey))
		for key, lines := range byKey {
			name, _, _ := strings.Cut(key, "/") // no name contains one
			byName[name] = lines
		}
		return byName, strange
	}
}

// query reads one resource, from its last answer on.
type query struct {
	nodequery.Question
	resource Resource
	back     time.Duration // the time before each sample that it covers
	window   int64         // of the first query (ms)
	whole    int64         // the end of the last answer (ms); 0 without one
}

// overlap is how many samples are queried again, because a server may receive some late.
const overlap = 2

// answer is the result of one query.
type answer struct {
	readings []Reading
	err      error
}

func (q *query) read(ctx context.Context, now int64, label model.LabelName, sort sorter) (a answer) {
	step := q.Step.Milliseconds()
	to := nodequery.Floor(now, step)
	from := nodequery.Floor(to-q.window, step)
	if q.whole != 0 && q.whole <= to { // otherwise the clock was set back
		from = max(from, q.whole-overlap*step)
	}
	lines, err := q.Ask(ctx, from, to)
	if err != nil {
		return answer{err: err}
	}
	byName, strange := sort(lines, label)
	if len(byName) == 0 {
		return answer{err: q.nothing(label, strange)}
	}
	q.whole = to
	var twice []string
	for name, lines := range byName {
		samples, err := nodequery.Join(lines)
		if err != nil {
			twice, a.err = append(twice, name), err
		} else if len(samples) > 0 {
			a.readings = append(a.readings, Reading{Node: name, Resource: q.resource, Window: q.back, Samples: samples})
		}
	}
	if a.err != nil {
		slices.Sort(twice)
		a.err = promapi.Fail(promapi.Content, "%s: query %.200q: of the nodes %s it has several series, such as %w",
			q.Text.Address, q.Text.Query, promapi.Some(twice), a.err)
	}
	return a
}

// nothing returns the error for an answer without lines of Nodes.
func (q *query) nothing(label model.LabelName, strange []nodequery.Line) error {
	if len(strange) == 0 {
		return promapi.Fail(promapi.Content, "%s: query %.200q returns no series: must return one for each Node",
			q.Text.Address, q.Text.Query)
	}
	names := map[string]bool{}
	for _, l := range strange {
		names[string(l.Labels[label])] = true
	}
	return promapi.Fail(promapi.Content,
		"%s: query %.200q: the label %s names no Node, but %s: must be names or addresses of Nodes",
		q.Text.Address, q.Text.Query, label, promapi.Some(slices.Sorted(maps.Keys(names))))
}

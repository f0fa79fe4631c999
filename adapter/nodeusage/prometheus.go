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

// DefaultNodeLabel is what nodes are labelled with where kubelets are scraped as kube-prometheus does.
const DefaultNodeLabel = "node"

// PrometheusOptions say what a server is asked; API, Address and both queries must be given.
type PrometheusOptions struct {
	API     v1.API // of the server
	Address string // of the server, as errors name it

	// PromQL for the cores and the bytes that each node uses; doc.go has some. What LookBack says of them is the window of
	// what is read.
	CPUQuery, MemoryQuery string
	// NodeLabel names a Node by its name or one of its addresses, with or without a port. "" = DefaultNodeLabel.
	NodeLabel string
	// Nodes returns the Nodes there are, nil while that is not known: nothing is asked then. If it is nil itself, values of
	// the label are taken for names.
	Nodes func() []nodequery.Node

	Interval time.Duration // between samples; 0 = 15 s
	Window   time.Duration // that is asked for at the start; 0 = 15 min
	Timeout  time.Duration // of a query; 0 = 10 s
}

// Prometheus asks a Prometheus server. At its first read it asks for the whole window, so that there are forecasts at once.
type Prometheus struct {
	nodes   func() []nodequery.Node
	label   model.LabelName
	queries []*query
}

// NewPrometheus returns a source that has asked nothing yet.
func NewPrometheus(o PrometheusOptions) *Prometheus {
	interval, window := cmp.Or(o.Interval, defaultInterval), cmp.Or(o.Window, defaultWindow)
	ask := func(r Resource, expr string) *query {
		return &query{
			Question: nodequery.New(o.API, o.Address, expr, interval, cmp.Or(o.Timeout, readTimeout)),
			resource: r, back: LookBack(expr), window: (window + interval).Milliseconds(),
		}
	}
	return &Prometheus{
		nodes: o.Nodes, label: model.LabelName(cmp.Or(o.NodeLabel, DefaultNodeLabel)),
		queries: []*query{ask(CPU, o.CPUQuery), ask(Memory, o.MemoryQuery)},
	}
}

// rangeOf matches the range of a range vector or of a subquery.
var rangeOf = regexp.MustCompile(`\[\s*([0-9][0-9a-z]*)\s*[\]:]`)

// LookBack returns the longest range that an expression looks back; 0 if it has none.
//
// Without one a server tells the last sample of a series for five minutes, or however long it is set to look back, as of
// the time that it is asked for. What has not been read for so long seems to be fresh then, and pods that came since to be in it.
func LookBack(expr string) (longest time.Duration) {
	for _, match := range rangeOf.FindAllStringSubmatch(expr, -1) {
		longest = max(longest, rangeFrom(match[1]))
	}
	return longest
}

// rangeFrom returns a range as it is written: a duration, or a number of seconds. 0 if it is neither.
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

// Read implements Source. Where one of the queries fails there is what the other brought.
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

// together makes one line of errors.
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

// sorter sorts the lines of an answer by the names of Nodes that a label means. The strange ones are of none.
type sorter func(lines []nodequery.Line, label model.LabelName) (byName map[string][]nodequery.Line, strange []nodequery.Line)

// byLabel takes what labels say for names.
func byLabel(lines []nodequery.Line, label model.LabelName) (byName map[string][]nodequery.Line, strange []nodequery.Line) {
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
	return func(lines []nodequery.Line, label model.LabelName) (byName map[string][]nodequery.Line, strange []nodequery.Line) {
		byKey, strange := match.Sort(lines, label)
		byName = make(map[string][]nodequery.Line, len(byKey))
		for key, lines := range byKey {
			name, _, _ := strings.Cut(key, "/") // which no name has
			byName[name] = lines
		}
		return byName, strange
	}
}

// query is what is asked of one resource, for what is new since the last answer.
type query struct {
	nodequery.Question
	resource Resource
	back     time.Duration // before each sample, that it tells of: as a mean, or from some time within
	window   int64         // that is asked for at first (ms)
	whole    int64         // up to when there are answers; 0 = there are none
}

// overlap is how many samples are asked for again, as a server may have learned of them late.
const overlap = 2

// answer is what came of one query.
type answer struct {
	readings []Reading
	err      error
}

func (q *query) read(ctx context.Context, now int64, label model.LabelName, sort sorter) (a answer) {
	step := q.Step.Milliseconds()
	to := nodequery.Floor(now, step)
	from := nodequery.Floor(to-q.window, step)
	if q.whole != 0 && q.whole <= to { // else the clock was set back
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
		a.err = promapi.Fail(promapi.Content, "%s: query %.200q: of the nodes %s it has several series, such as %w", q.Text.Address, q.Text.Query, promapi.Some(twice), a.err)
	}
	return a
}

// nothing tells of an answer that is of no Node.
func (q *query) nothing(label model.LabelName, strange []nodequery.Line) error {
	if len(strange) == 0 {
		return promapi.Fail(promapi.Content, "%s: query %.200q returns no series: must return one for each Node", q.Text.Address, q.Text.Query)
	}
	names := map[string]bool{}
	for _, l := range strange {
		names[string(l.Labels[label])] = true
	}
	return promapi.Fail(promapi.Content, "%s: query %.200q: the label %s names no Node, but %s: must be names or addresses of Nodes",
		q.Text.Address, q.Text.Query, label, promapi.Some(slices.Sorted(maps.Keys(names))))
}

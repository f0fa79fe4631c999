package podview

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/foresail/foresail/adapter/scheduler/extender"
)

// maxScored is the number of nodes that are printed unless all are requested.
const maxScored = 10

// table writes lines, of which tabs make columns. It keeps the first error.
type table struct {
	tabs *tabwriter.Writer
	err  error
}

func (t *table) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.tabs, format+"\n", args...)
	}
}

// section begins a part with columns of its own.
func (t *table) section() {
	t.line("")
	if t.err == nil {
		t.err = t.tabs.Flush()
	}
}

// Table writes an explanation that has an answer, with each node if all is set.
func Table(w io.Writer, e *Explanation, all bool) error {
	t := &table{tabs: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.line("Pod %s/%s", e.Namespace, e.Name)
	t.line("  %s", e.Sentence())
	if another := e.another(); another != "" {
		t.line("  %s", another)
	}
	for _, f := range e.facts() {
		t.line("  %s\t%s", f.Name, f.Text)
	}
	t.scores(e.scored(), all)
	if e.Filter != nil {
		t.passed(e.Filter, e.scored() == nil, all)
		t.filtered(e.Filter, all)
	}
	if t.err != nil {
		return t.err
	}
	return t.tabs.Flush()
}

// Warn writes which replicas could not be asked.
func Warn(w io.Writer, e *Explanation) {
	for _, text := range e.missing() {
		fmt.Fprintln(w, "Warning: "+text)
	}
}

func (t *table) scores(p *extender.ScoreDecision, all bool) {
	if p == nil {
		return
	}
	nodes := byScore(p.Nodes)
	shown := nodes
	if !all {
		shown = nodes[:min(len(nodes), maxScored)]
	}
	t.section()
	t.line("NODE\tSCORE\tU\tCPU: PREDICTED\tASSUMED\tPOD\tOF\tMEMORY: PREDICTED\tASSUMED\tPOD\tOF\tWHY")
	for _, n := range shown {
		t.line("%s\t%d\t%s\t%s\t%s", n.Name, n.Score, used(n.Used), columns(n.CPU, n.Memory), n.Message)
	}
	if rest := nodes[len(shown):]; len(rest) > 0 {
		t.line("%d more with scores from %d to %d: --all shows them", len(rest), rest[0].Score, rest[len(rest)-1].Score)
	}
}

// columns are the four of each resource.
func columns(cpu, memory *extender.Share) string {
	c, m := amountsOf(cpu, cores), amountsOf(memory, bytesOf)
	return strings.Join([]string{c.Predicted, c.Assumed, c.Pod, c.Allocatable, m.Predicted,
		m.Assumed, m.Pod, m.Allocatable}, "\t")
}

// passed prints the nodes that passed the filter, if they were not scored.
func (t *table) passed(f *extender.FilterDecision, unscored, all bool) {
	if !unscored || f.Passed == 0 {
		return
	}
	t.section()
	t.line("PASSED\tCPU: PREDICTED\tASSUMED\tPOD\tOF\tMEMORY: PREDICTED\tASSUMED\tPOD\tOF\tWHY")
	shown := 0
	for _, n := range f.Nodes {
		if n.Filtered || shown == maxScored && !all {
			continue
		}
		shown++
		t.line("%s\t%s\t%s", n.Name, columns(n.CPU, n.Memory), n.Message)
	}
	if shown < f.Passed {
		t.line("%d more: --all shows them", f.Passed-shown)
	}
}

// filtered prints the nodes that did not, by reason, or each of them with --all.
func (t *table) filtered(f *extender.FilterDecision, all bool) {
	if f.Filtered == 0 {
		return
	}
	t.section()
	if all {
		t.line("FILTERED\tWHY")
		for _, n := range f.Nodes {
			if n.Filtered {
				t.line("%s\t%s", n.Name, n.Message)
			}
		}
		return
	}
	t.line("FILTERED FOR\tNODES\tSUCH AS")
	for _, r := range reasons(f) {
		t.line("%s\t%d\t%s", r.Reason, r.Nodes, r.Such)
	}
}

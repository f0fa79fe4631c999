package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/foresail/foresail/adapter/extender"
)

// How much is told unless all is asked for.
const (
	maxScored   = 10 // nodes with scores
	maxFiltered = 3  // names of filtered nodes for one reason
)

// podTable writes lines, of which tabs make columns. It keeps the first error.
type podTable struct {
	tabs *tabwriter.Writer
	err  error
}

func (t *podTable) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.tabs, format+"\n", args...)
	}
}

// section begins a part with columns of its own.
func (t *podTable) section() {
	t.line("")
	if t.err == nil {
		t.err = t.tabs.Flush()
	}
}

// table tells an explanation to people, with each node if all are asked for.
func (e *podExplanation) table(w io.Writer, all bool) error {
	t := &podTable{tabs: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.line("Pod %s/%s", e.Namespace, e.Name)
	t.line("  %s", e.sentence())
	if e.differs() {
		t.line("  The answers are about an earlier pod of that name.")
	}
	newest := e.newest()
	t.line("  counted as\t%s cores, %s; it requests %s cores, %s",
		cores(newest.Estimate.CPU), bytesOf(newest.Estimate.Memory), cores(newest.Requests.CPU), bytesOf(newest.Requests.Memory))
	if f := e.Filter; f != nil {
		t.line("  filter\t%s: %s", e.when(f.At, e.FilteredBy), f.Message)
	}
	if p := e.scored(); p != nil {
		t.line("  prioritize\t%s: %s", e.when(p.At, e.ScoredBy), p.Message)
	} else {
		t.line("  prioritize\tnot asked then: no more than one node was left")
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

// scored is what prioritize answered in the attempt that filter answered last, nil if it was not asked.
func (e *podExplanation) scored() *extender.ScoreDecision {
	if e.Prioritize == nil || e.Filter != nil && e.Prioritize.At.Before(e.Filter.At) {
		return nil
	}
	return e.Prioritize
}

// newest is of the call that was answered last.
func (e *podExplanation) newest() *extender.Decision {
	if p := e.scored(); p != nil {
		return &p.Decision
	}
	return &e.Filter.Decision
}

// differs tells whether the pod that there is now is another one than was asked about.
func (e *podExplanation) differs() bool {
	return e.Pod != nil && e.Pod.UID != e.newest().UID
}

func (e *podExplanation) when(at time.Time, by string) string {
	return fmt.Sprintf("%s ago, by %s", duration.HumanDuration(e.At.Sub(at)), by)
}

// sentence sums up.
func (e *podExplanation) sentence() string {
	switch {
	case e.Pod == nil:
		return cmp.Or(sentenceCase(e.PodError), "The cluster was not asked about the pod") + "."
	case e.Pod.Node == "" && e.Filter != nil && e.Filter.WaitsFor != "":
		return fmt.Sprintf("It is not bound: no node that would do fits, and it waits for the pool %s to grow.", e.Filter.WaitsFor)
	case e.Pod.Node == "":
		return fmt.Sprintf("It is not bound to a node: %s", cmp.Or(e.Pod.Message, "the scheduler has not said why."))
	}
	bound := fmt.Sprintf("It went to %s", e.Pod.Node)
	if e.Pod.Scheduled != nil {
		bound += fmt.Sprintf(" %s ago", duration.HumanDuration(e.At.Sub(e.Pod.Scheduled.Time)))
	}
	return bound + e.place()
}

// place tells what Foresail had said of the node that the pod went to.
func (e *podExplanation) place() string {
	if e.Filter == nil && e.Prioritize == nil {
		return "."
	}
	if p := e.scored(); p != nil {
		ranked := byScore(p.Nodes)
		for _, n := range ranked {
			switch {
			case n.Name != e.Pod.Node:
			case n.Score == ranked[0].Score:
				return fmt.Sprintf(", which no other of %d nodes was better than: score %d.", len(ranked), n.Score)
			default:
				return fmt.Sprintf(", with score %d. %s had %d; the scheduler's own plugins have a say, too.", n.Score, ranked[0].Name, ranked[0].Score)
			}
		}
	}
	if e.Filter != nil {
		for _, n := range e.Filter.Nodes {
			switch {
			case n.Name != e.Pod.Node:
			case n.Filtered:
				return ", which had been filtered: the scheduler did not receive or not use that answer."
			case e.scored() == nil:
				return ", the one node that was left."
			}
		}
	}
	return ", about which Foresail was not asked then."
}

// byScore sorts nodes, the best first.
func byScore(nodes []extender.ScoredNode) []extender.ScoredNode {
	return slices.SortedStableFunc(slices.Values(nodes), func(a, b extender.ScoredNode) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name))
	})
}

func (t *podTable) scores(p *extender.ScoreDecision, all bool) {
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
		t.line("%s\t%d\t%.2f\t%s\t%s\t%s", n.Name, n.Score, n.Used, amounts(n.CPU, cores), amounts(n.Memory, bytesOf), n.Message)
	}
	if rest := nodes[len(shown):]; len(rest) > 0 {
		t.line("%d more with scores from %d to %d: --all shows them", len(rest), rest[0].Score, rest[len(rest)-1].Score)
	}
}

// amounts are four columns of a resource. What is requested stands in parentheses where nothing is predicted.
func amounts(s *extender.Share, text func(float64) string) string {
	if s == nil {
		return "?\t?\t?\t?"
	}
	predicted := "(" + text(s.Requested) + ")"
	if s.Predicted != nil {
		predicted = text(*s.Predicted)
	}
	return strings.Join([]string{predicted, text(s.Assumed), text(s.Pod), text(s.Allocatable)}, "\t")
}

// passed prints the nodes that passed the filter, if they were not scored.
func (t *podTable) passed(f *extender.FilterDecision, unscored, all bool) {
	if !unscored || f.Passed == 0 {
		return
	}
	t.section()
	t.line("PASSED\tCPU: PREDICTED\tASSUMED\tPOD\tOF\tMEMORY: PREDICTED\tASSUMED\tPOD\tOF\tWHY")
	told := 0
	for _, n := range f.Nodes {
		if n.Filtered || told == maxScored && !all {
			continue
		}
		told++
		t.line("%s\t%s\t%s\t%s", n.Name, amounts(n.CPU, cores), amounts(n.Memory, bytesOf), n.Message)
	}
	if told < f.Passed {
		t.line("%d more: --all shows them", f.Passed-told)
	}
}

// filtered prints the nodes that did not, by reason, or each of them with --all.
func (t *podTable) filtered(f *extender.FilterDecision, all bool) {
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
	reasons, byReason := []string{}, map[string][]extender.FilterNode{}
	for _, n := range f.Nodes {
		if !n.Filtered {
			continue
		}
		if byReason[n.Reason] == nil {
			reasons = append(reasons, n.Reason)
		}
		byReason[n.Reason] = append(byReason[n.Reason], n)
	}
	t.line("FILTERED FOR\tNODES\tSUCH AS")
	for _, r := range reasons {
		nodes := byReason[r]
		var names []string
		for _, n := range nodes[:min(len(nodes), maxFiltered)] {
			names = append(names, n.Name)
		}
		more := ""
		if len(nodes) > maxFiltered {
			more = ", …"
		}
		t.line("%s\t%d\t%s%s: %s", r, len(nodes), strings.Join(names, ", "), more, nodes[0].Message)
	}
}

func cores(x float64) string { return fmt.Sprintf("%.2f", x) }

// bytesOf tells bytes in whole Mi.
func bytesOf(x float64) string {
	return resource.NewQuantity(int64(x)>>20<<20, resource.BinarySI).String()
}

func sentenceCase(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

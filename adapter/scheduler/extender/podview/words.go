package podview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/foresail/foresail/adapter/scheduler/extender"
)

// Sentence sums up what is known.
func (e *Explanation) Sentence() string {
	switch {
	case e.Pod == nil:
		return cmp.Or(sentenceCase(e.PodError), "The cluster was not asked about the pod") + "."
	case e.Pod.Node == "" && e.Filter != nil && e.Filter.WaitsFor != "":
		return fmt.Sprintf("It is not bound: no node that would do fits, and it waits for the pool %s to grow.",
			e.Filter.WaitsFor)
	case e.Pod.Node == "":
		return fmt.Sprintf("It is not bound to a node: %s", whyUnbound(e.Pod.Message))
	}
	bound := fmt.Sprintf("It went to %s", e.Pod.Node)
	if e.Pod.Scheduled != nil {
		bound += fmt.Sprintf(" %s ago", duration.HumanDuration(e.At.Sub(e.Pod.Scheduled.Time)))
	}
	return bound + e.place()
}

func whyUnbound(message string) string { return cmp.Or(message, "the scheduler has not said why.") }

// place describes Foresail's decision about the node that the pod was bound to.
func (e *Explanation) place() string {
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
				return fmt.Sprintf(", with score %d. %s had %d; the scheduler's own plugins have a say, too.", n.Score,
					ranked[0].Name, ranked[0].Score)
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

// Fact is a line about the decisions.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// facts are about what was answered, of which there is something.
func (e *Explanation) facts() []Fact {
	newest := e.newest()
	facts := []Fact{{"counted as", fmt.Sprintf("%s cores, %s; it requests %s cores, %s",
		cores(newest.Estimate.CPU), bytesOf(newest.Estimate.Memory), cores(newest.Requests.CPU),
		bytesOf(newest.Requests.Memory))}}
	if f := e.Filter; f != nil {
		facts = append(facts, Fact{"filter", e.when(f.At, e.FilteredBy) + ": " + f.Message})
	}
	if p := e.scored(); p != nil {
		return append(facts, Fact{"prioritize", e.when(p.At, e.ScoredBy) + ": " + p.Message})
	}
	return append(facts, Fact{"prioritize", "not asked then: no more than one node was left"})
}

// scored returns the answer of prioritize in the attempt that filter answered last; nil if it was not called.
func (e *Explanation) scored() *extender.ScoreDecision {
	if e.Prioritize == nil || e.Filter != nil && e.Prioritize.At.Before(e.Filter.At) {
		return nil
	}
	return e.Prioritize
}

// newest is of the call that was answered last.
func (e *Explanation) newest() *extender.Decision {
	if p := e.scored(); p != nil {
		return &p.Decision
	}
	return &e.Filter.Decision
}

// another says it if the answers are about another pod than there is now, else "".
func (e *Explanation) another() string {
	if e.Pod == nil || e.Pod.UID == e.newest().UID {
		return ""
	}
	return "The answers are about an earlier pod of that name."
}

func (e *Explanation) when(at time.Time, by string) string {
	return fmt.Sprintf("%s ago, by %s", duration.HumanDuration(e.At.Sub(at)), by)
}

// missing says which replicas could not be asked, by their names.
func (e *Explanation) missing() []string {
	all := []string{}
	for _, replica := range slices.Sorted(maps.Keys(e.Unreachable)) {
		all = append(all, "a newer answer may be missing: "+e.Unreachable[replica])
	}
	return all
}

// byScore sorts nodes, the best first.
func byScore(nodes []extender.ScoredNode) []extender.ScoredNode {
	return slices.SortedStableFunc(slices.Values(nodes), func(a, b extender.ScoredNode) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name))
	})
}

// maxFiltered is how many filtered nodes are named for one reason.
const maxFiltered = 3

// Reason is a reason for which nodes were filtered.
type Reason struct {
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
	Such   string `json:"suchAs"` // some of them, and the message of the first
}

// reasons are those of a decision, in the order of its nodes.
func reasons(f *extender.FilterDecision) []Reason {
	var order []string
	of := map[string][]extender.FilterNode{}
	for _, n := range f.Nodes {
		if !n.Filtered {
			continue
		}
		if of[n.Reason] == nil {
			order = append(order, n.Reason)
		}
		of[n.Reason] = append(of[n.Reason], n)
	}
	all := make([]Reason, 0, len(order))
	for _, reason := range order {
		nodes := of[reason]
		var names []string
		for _, n := range nodes[:min(len(nodes), maxFiltered)] {
			names = append(names, n.Name)
		}
		if len(nodes) > maxFiltered {
			names = append(names, "…")
		}
		all = append(all, Reason{Reason: reason, Nodes: len(nodes),
			Such: strings.Join(names, ", ") + ": " + nodes[0].Message})
	}
	return all
}

// Amounts are of one resource of a node. What is requested stands in parentheses where nothing is predicted.
type Amounts struct {
	Predicted   string `json:"predicted"`
	Assumed     string `json:"assumed"`
	Pod         string `json:"pod"`
	Allocatable string `json:"allocatable"`
}

func amountsOf(s *extender.Share, text func(float64) string) Amounts {
	if s == nil {
		return Amounts{"?", "?", "?", "?"}
	}
	predicted := "(" + text(s.Requested) + ")"
	if s.Predicted != nil {
		predicted = text(*s.Predicted)
	}
	return Amounts{predicted, text(s.Assumed), text(s.Pod), text(s.Allocatable)}
}

func cores(x float64) string { return fmt.Sprintf("%.2f", x) }

// bytesOf formats bytes in whole Mi.
func bytesOf(x float64) string {
	return resource.NewQuantity(int64(x)>>20<<20, resource.BinarySI).String()
}

func sentenceCase(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func used(u float64) string { return fmt.Sprintf("%.2f", u) }

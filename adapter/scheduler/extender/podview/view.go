package podview

import (
	"fmt"
	"slices"
	"time"
)

// maxNodes bounds the nodes of a View.
const maxNodes = 1000

// View is an Explanation in the words of Table, for the page.
type View struct {
	Time      time.Time `json:"time"`
	Problem   string    `json:"problem,omitempty"` // why there is no answer
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Sentence  string    `json:"sentence,omitempty"` // "": the pod was not asked about
	Another   string    `json:"another,omitempty"`  // said of answers about another pod of that name
	Facts     []Fact    `json:"facts"`
	Filtered  []Reason  `json:"filteredFor"`
	// the best first, filtered ones last: maxNodes at most, the pod's own among them
	Nodes   []Node   `json:"nodes"`
	About   string   `json:"aboutNodes"` // how many there are, and which are left out
	Missing []string `json:"missing"`    // about replicas that could not be asked
}

// Node is the verdict on a node.
type Node struct {
	Name     string  `json:"name"`
	Here     bool    `json:"here"` // the pod went to it
	Filtered bool    `json:"filtered"`
	Verdict  string  `json:"verdict"`
	Score    *int    `json:"score"` // nil: it has none
	Used     string  `json:"used,omitempty"`
	CPU      Amounts `json:"cpu"`
	Memory   Amounts `json:"memory"`
	Message  string  `json:"message"`
}

// ViewOf puts an explanation into words, and what went wrong with it, if anything did.
func ViewOf(e *Explanation, err error) View {
	v := View{Time: e.At, Namespace: e.Namespace, Name: e.Name, Facts: []Fact{}, Filtered: []Reason{},
		Nodes: []Node{}, Missing: e.missing()}
	if err != nil {
		v.Problem = "There is no answer: " + err.Error()
	}
	if e.Pod != nil || e.Filter != nil || e.Prioritize != nil {
		v.Sentence = e.Sentence()
	}
	if e.Filter == nil && e.Prioritize == nil {
		return v
	}
	v.Another, v.Facts = e.another(), e.facts()
	if e.Filter != nil {
		v.Filtered = reasons(e.Filter)
	}
	v.addNodes(nodesOf(e))
	return v
}

// addNodes adds the best and the first that were filtered. Each kind has half of the room, or what the other leaves.
func (v *View) addNodes(passed, filtered []Node) {
	some := first(passed, max(maxNodes/2, maxNodes-len(filtered)))
	others := first(filtered, maxNodes-len(some))
	v.Nodes = append(append(v.Nodes, some...), others...)
	all := len(passed) + len(filtered)
	v.About = fmt.Sprintf("%d nodes", all)
	if len(v.Nodes) < all {
		v.About += fmt.Sprintf("; shown are %d of %d that passed, and %d of %d that were filtered", len(some),
			len(passed), len(others), len(filtered))
	}
}

// first returns n nodes at most. The one that the pod went to is among them: if it comes later, it
// takes the place of the last.
func first(nodes []Node, n int) []Node {
	if n >= len(nodes) {
		return nodes
	}
	if here := slices.IndexFunc(nodes, func(n Node) bool { return n.Here }); n > 0 && here >= n {
		return append(slices.Clone(nodes[:n-1]), nodes[here])
	}
	return nodes[:n]
}

// nodesOf returns the nodes that were scored, or passed without a score, and the nodes that were filtered.
func nodesOf(e *Explanation) (passed, filtered []Node) {
	here := ""
	if e.Pod != nil {
		here = e.Pod.Node
	}
	scored := e.scored()
	if scored != nil {
		for _, n := range byScore(scored.Nodes) {
			passed = append(passed, Node{
				Name: n.Name, Here: n.Name == here, Verdict: "scored", Score: &n.Score, Used: used(n.Used),
				CPU: amountsOf(n.CPU, cores), Memory: amountsOf(n.Memory, bytesOf), Message: n.Message,
			})
		}
	}
	if e.Filter == nil {
		return passed, nil
	}
	for _, n := range e.Filter.Nodes {
		node := Node{
			Name: n.Name, Here: n.Name == here, Filtered: n.Filtered, Verdict: "passed",
			CPU: amountsOf(n.CPU, cores), Memory: amountsOf(n.Memory, bytesOf), Message: n.Message,
		}
		switch {
		case n.Filtered:
			node.Verdict = "filtered for " + n.Reason
			filtered = append(filtered, node)
		case scored == nil:
			passed = append(passed, node)
		}
	}
	return passed, filtered
}

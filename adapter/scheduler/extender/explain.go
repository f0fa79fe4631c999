package extender

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// ExplainPath is the path of ExplainHandler: ExplainPath + NAMESPACE + "/" + NAME.
const ExplainPath = "/extender/pods/"

// Explanation has the last decisions for a pod.
type Explanation struct {
	Namespace  string          `json:"namespace"`
	Name       string          `json:"name"`
	Filter     *FilterDecision `json:"filter,omitempty"`     // nil: not asked, or not lately
	Prioritize *ScoreDecision  `json:"prioritize,omitempty"` // the same; also if one node was left
}

// Decision is the common part of both.
type Decision struct {
	At       time.Time `json:"at"`
	CachedAt time.Time `json:"cachedAt,omitzero"` // the time of the snapshot of the cluster; zero: there was none
	UID      types.UID `json:"uid"`
	Requests Amounts   `json:"requests"`
	Estimate Amounts   `json:"estimate"` // what the pod is expected to use
	Message  string    `json:"message"`
}

// FilterDecision has the nodes that passed and those that were filtered.
type FilterDecision struct {
	Decision `json:",inline"`
	Passed   int          `json:"passed"`
	Filtered int          `json:"filtered"`
	WaitsFor string       `json:"waitsFor,omitempty"` // the pool that would have to grow
	Nodes    []FilterNode `json:"nodes"`
}

// ScoreDecision has the scores of nodes.
type ScoreDecision struct {
	Decision `json:",inline"`
	Nodes    []ScoredNode `json:"nodes"`
}

// FilterNode is the verdict on a node.
type FilterNode struct {
	Name     string `json:"name"`
	Filtered bool   `json:"filtered"`
	Reason   string `json:"reason"` // fits, exempt, nominated, removing, memory or cpu
	// what was not known: no_cache, unknown_node, no_allocatable, no_prediction or stale_prediction
	Unknown string `json:"unknown,omitempty"`
	Pool    string `json:"pool,omitempty"` // that removes the node, or would next
	Message string `json:"message"`
	CPU     *Share `json:"cpu,omitempty"` // nil: the node was not known
	Memory  *Share `json:"memory,omitempty"`
}

// ScoredNode is the score of a node: round(10*pack(used)*c*warmth), less one if another node is the best.
type ScoredNode struct {
	Name      string  `json:"name"`
	Score     int     `json:"score"`
	Used      float64 `json:"used"`                // u: the larger share of the node used, with the pod
	Warmth    float64 `json:"warmth"`              // w
	Candidate bool    `json:"candidate,omitempty"` // c is 0: Pool removes the node, or would next
	Unknown   string  `json:"unknown,omitempty"`   // see FilterNode
	Pool      string  `json:"pool,omitempty"`
	Message   string  `json:"message"`
	CPU       *Share  `json:"cpu,omitempty"` // nil: the node was not known
	Memory    *Share  `json:"memory,omitempty"`
}

// Amounts are of both resources.
type Amounts struct {
	CPU    float64 `json:"cpuCores"`
	Memory float64 `json:"memoryBytes"`
}

// Share has the amounts of one resource of a node, in cores or bytes.
type Share struct {
	// nil: there was no fresh prediction, and requests counted instead
	Predicted   *float64 `json:"predicted,omitempty"`
	Upper       *float64 `json:"upper,omitempty"` // the upper estimate, which is compared with limits
	Assumed     float64  `json:"assumed"`         // for pods that came since the prediction
	Requested   float64  `json:"requested"`
	Pod         float64  `json:"pod"` // what the pod that was asked about counted as
	Allocatable float64  `json:"allocatable"`
}

// explainer explains the last decisions for a pod.
type explainer struct {
	rules     Rules
	decisions *decisionCache
}

func (d explainer) serve(w http.ResponseWriter, r *http.Request) {
	pod := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	explanation, ok := d.explanation(pod)
	if !ok {
		http.Error(w, fmt.Sprintf(
			"The scheduler has not asked this replica about the pod %s lately: it may have been scheduled too long ago, by a scheduler that does not ask Foresail, or it asks another replica.", pod), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(explanation) // the client may be gone
}

func (d explainer) explanation(pod types.NamespacedName) (Explanation, bool) {
	filter, prioritize := d.decisions.of(pod)
	e := Explanation{Namespace: pod.Namespace, Name: pod.Name}
	if filter != nil {
		e.Filter = d.filterDecision(filter)
	}
	if prioritize != nil {
		e.Prioritize = d.scoreDecision(prioritize)
	}
	return e, filter != nil || prioritize != nil
}

func decisionOf(f *decision) Decision {
	return Decision{At: f.at, CachedAt: f.cached, UID: f.pod.uid,
		Requests: amountsForJSON(f.pod.requests), Estimate: amountsForJSON(f.pod.estimate)}
}

func amountsForJSON(u use) Amounts {
	return Amounts{CPU: float64(u.cpu) / 1000, Memory: float64(u.memory)}
}

func (d explainer) filterDecision(f *decision) *FilterDecision {
	out := &FilterDecision{Decision: decisionOf(f), WaitsFor: f.awaited, Nodes: make([]FilterNode, len(f.verdicts))}
	for i := range f.verdicts {
		v := &f.verdicts[i]
		n := FilterNode{Name: v.name, Filtered: f.room.filters(v), Reason: v.reason.String(), Pool: v.pool}
		n.Unknown = gapForJSON(v.gap)
		n.CPU, n.Memory = sharesOf(v, f.pod.estimate)
		n.Message = d.nodeMessage(v, &n, f.room)
		if out.Nodes[i] = n; n.Filtered {
			out.Filtered++
		} else {
			out.Passed++
		}
	}
	out.Message = filterMessage(f, out)
	return out
}

func filterMessage(f *decision, out *FilterDecision) string {
	switch {
	case f.pod.exempt:
		return "Pods of DaemonSets and critical pods pass on every node."
	case f.room == waits:
		return fmt.Sprintf("Every node would exceed a limit: the pod waits for the pool %s to grow.", f.awaited)
	case f.room == elsewhere:
		return "Every node that the scheduler asked about would exceed a limit, but others have room: the scheduler tries those next."
	case f.room == passed:
		return "Every node would exceed a limit, so the limits are ignored: no pool can grow for the pod, it has waited for its maximum, or it would preempt others."
	}
	return fmt.Sprintf("%d of %d nodes are filtered.", out.Filtered, len(out.Nodes))
}

func (d explainer) nodeMessage(v *verdict, n *FilterNode, room outcome) string {
	switch v.reason {
	case exempt:
		return "passed, as every node does for this pod"
	case nominated:
		return "passed: the scheduler nominated the node for the pod"
	case removing:
		return "filtered: " + removedBy(v.pool)
	case overMemory:
		return over("memory", n.Memory, d.rules.MemoryLimit, bytesText) + passedText(room)
	case overCPU:
		return over("CPU", n.CPU, d.rules.CPULimit, coresText) + passedText(room)
	}
	if v.gap != noGap {
		return "passed: " + gapText(v.gap)
	}
	return "passed"
}

func over(what string, s *Share, limit float64, text func(float64) string) string {
	return fmt.Sprintf("%s up to %s predicted, %s of assumed pods and %s of this one would exceed %.0f%% of %s",
		what, text(*s.Upper), text(s.Assumed), text(s.Pod), 100*limit, text(s.Allocatable))
}

func passedText(r outcome) string {
	if r == passed {
		return "; passed, since no node is left"
	}
	return ": filtered"
}

// removedBy names the pool that removes a node, or the taint.
func removedBy(who string) string { return "it is being removed (" + who + ")" }

func (d explainer) scoreDecision(f *decision) *ScoreDecision {
	out := &ScoreDecision{Decision: decisionOf(f), Nodes: make([]ScoredNode, len(f.verdicts))}
	for i := range f.verdicts {
		v := &f.verdicts[i]
		n := ScoredNode{
			Name: v.name, Score: int(v.score), Used: finite(v.used), Warmth: finite(v.warmth), Candidate: v.pool != "",
			Unknown: gapForJSON(v.gap), Pool: v.pool,
		}
		n.CPU, n.Memory = sharesOf(v, f.pod.scheduled)
		n.Message = scoreMessage(v)
		out.Nodes[i] = n
	}
	out.Message = fmt.Sprintf("%d nodes are scored: fuller is better up to %.0f%%, emptier is better above.",
		len(out.Nodes), 100*d.rules.Target)
	if len(f.verdicts) > 0 && f.verdicts[0].gap == gapSnapshot {
		out.Message = "All nodes get the same score: " + gapText(gapSnapshot) + "."
	}
	return out
}

func scoreMessage(v *verdict) string {
	if v.gap == gapSnapshot {
		return gapText(gapSnapshot)
	}
	text := fmt.Sprintf("%.0f%% used with this pod", 100*v.used)
	if v.gap != noGap {
		text += ", as far as known: " + gapText(v.gap)
	}
	if v.warmth < 1 {
		text += fmt.Sprintf("; warming up: %.0f%% of the score", 100*v.warmth)
	}
	if v.second {
		text += "; reduced by one, so that a single node has the best score"
	}
	switch {
	case v.reason == removing:
		text += "; " + removedBy(v.pool)
	case v.pool != "":
		text += "; kept empty: the pool " + v.pool + " would remove it next"
	}
	return text
}

// gapForJSON returns the name of a gap; "" = none.
func gapForJSON(g gap) string {
	if g == noGap {
		return ""
	}
	return g.String()
}

// gapText describes a gap.
func gapText(g gap) string {
	return [gaps]string{
		"all is known",
		"the state of the cluster is not known, or too old",
		"the node is not known yet",
		"its allocatable resources are not known",
		"there is no prediction of its use: requests count",
		"the prediction of its use is too old: requests count",
	}[g]
}

// sharesOf returns the amounts behind a verdict with a pod of some size, nil for an unknown node.
func sharesOf(v *verdict, pod use) (cpu, memory *Share) {
	if v.gap == gapNode || v.cpu == (share{}) && v.memory == (share{}) {
		return nil, nil
	}
	amounts := amountsForJSON(pod)
	return shareForJSON(v.cpu, amounts.CPU), shareForJSON(v.memory, amounts.Memory)
}

func shareForJSON(s share, pod float64) *Share {
	out := &Share{Assumed: finite(s.assumed), Requested: finite(s.requested), Pod: pod,
		Allocatable: finite(s.allocatable)}
	if !math.IsNaN(float64(s.predicted)) {
		predicted, upper := finite(s.predicted), finite(s.upper)
		out.Predicted, out.Upper = &predicted, &upper
	}
	return out
}

// finite replaces numbers that JSON cannot express by 0.
func finite(f float32) float64 {
	if x := float64(f); !math.IsInf(x, 0) && !math.IsNaN(x) {
		return x
	}
	return 0
}

func coresText(cores float64) string { return fmt.Sprintf("%.2f cores", cores) }

func bytesText(b float64) string {
	return resource.NewQuantity(int64(b)>>20<<20, resource.BinarySI).String()
}

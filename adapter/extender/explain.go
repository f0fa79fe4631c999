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

// ExplainPath is below what ExplainHandler answers: ExplainPath + NAMESPACE + "/" + NAME.
const ExplainPath = "/extender/pods/"

// Explanation is what was answered for a pod last.
type Explanation struct {
	Namespace  string         `json:"namespace"`
	Name       string         `json:"name"`
	Filter     *FilterFinding `json:"filter,omitempty"`     // nil: not asked, or not lately
	Prioritize *ScoreFinding  `json:"prioritize,omitempty"` // the same; also if one node was left
}

// Finding is what both have in common.
type Finding struct {
	At       time.Time `json:"at"`
	ViewedAt time.Time `json:"viewedAt,omitzero"` // of when the view of the cluster was; zero: there was none
	UID      types.UID `json:"uid"`
	Requests Amounts   `json:"requests"`
	Estimate Amounts   `json:"estimate"` // what the pod is expected to use
	Message  string    `json:"message"`
}

// FilterFinding says which nodes were refused.
type FilterFinding struct {
	Finding  `json:",inline"`
	Accepted int          `json:"accepted"`
	Refused  int          `json:"refused"`
	WaitsFor string       `json:"waitsFor,omitempty"` // the pool that would have to grow
	Nodes    []FilterNode `json:"nodes"`
}

// ScoreFinding says how nodes were scored.
type ScoreFinding struct {
	Finding `json:",inline"`
	Nodes   []ScoredNode `json:"nodes"`
}

// FilterNode is the verdict on a node.
type FilterNode struct {
	Name    string `json:"name"`
	Refused bool   `json:"refused"`
	Reason  string `json:"reason"`            // fits, exempt, nominated, removing, memory or cpu
	Unknown string `json:"unknown,omitempty"` // what was not known: no_view, unknown_node, no_allocatable, no_prediction or stale_prediction
	Pool    string `json:"pool,omitempty"`    // that removes the node, or would next
	Message string `json:"message"`
	CPU     *Share `json:"cpu,omitempty"` // nil: the node was not known
	Memory  *Share `json:"memory,omitempty"`
}

// ScoredNode is the score of a node, round(10*pack(used)*c*warmth), or one less where another node is the best alone.
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

// Share is what a node has and what of it counted, in cores or bytes.
type Share struct {
	Predicted   *float64 `json:"predicted,omitempty"` // nil: there was no fresh prediction, and requests counted instead
	Upper       *float64 `json:"upper,omitempty"`     // the estimate from above, which limits are compared with
	Ledger      float64  `json:"ledger"`              // for pods that came since the prediction
	Requested   float64  `json:"requested"`
	Pod         float64  `json:"pod"` // what the pod that was asked about counted as
	Allocatable float64  `json:"allocatable"`
}

// ExplainHandler answers GET ExplainPath{namespace}/{name} with the Explanation of a pod, 404 if it was not asked about
// lately.
func (e *Extender) ExplainHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ExplainPath+"{namespace}/{name}", e.door.explain)
	return mux
}

func (d *door) explain(w http.ResponseWriter, r *http.Request) {
	pod := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	explanation, ok := d.explanation(pod)
	if !ok {
		http.Error(w, fmt.Sprintf("The scheduler has not asked this replica about the pod %s lately: it may have been scheduled too long ago, by a scheduler that does not ask Foresail, or it asks another replica.", pod), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(explanation) // who has gone needs no answer
}

func (d *door) explanation(pod types.NamespacedName) (Explanation, bool) {
	filter, prioritize := d.trail.of(pod)
	e := Explanation{Namespace: pod.Namespace, Name: pod.Name}
	if filter != nil {
		e.Filter = d.rules.filterFinding(filter)
	}
	if prioritize != nil {
		e.Prioritize = d.rules.scoreFinding(prioritize)
	}
	return e, filter != nil || prioritize != nil
}

func (f *finding) told() Finding {
	return Finding{At: f.at, ViewedAt: f.viewed, UID: f.pod.uid, Requests: f.pod.requests.told(), Estimate: f.pod.estimate.told()}
}

func (u use) told() Amounts { return Amounts{CPU: float64(u.cpu) / 1000, Memory: float64(u.memory)} }

func (r Rules) filterFinding(f *finding) *FilterFinding {
	out := &FilterFinding{Finding: f.told(), WaitsFor: f.awaited, Nodes: make([]FilterNode, len(f.verdicts))}
	for i := range f.verdicts {
		v := &f.verdicts[i]
		n := FilterNode{Name: v.name, Refused: f.room.refuses(v), Reason: v.reason.String(), Unknown: v.gap.told(), Pool: v.pool}
		n.CPU, n.Memory = v.shares(f.pod.estimate)
		n.Message = r.filterMessage(v, &n, f.room)
		if out.Nodes[i] = n; n.Refused {
			out.Refused++
		} else {
			out.Accepted++
		}
	}
	out.Message = f.filterMessage(out)
	return out
}

func (f *finding) filterMessage(out *FilterFinding) string {
	switch {
	case f.pod.exempt:
		return "No node is refused to pods of DaemonSets and to critical ones."
	case f.room == waits:
		return fmt.Sprintf("Every node would pass a limit, so that the pod waits for the pool %s to grow.", f.awaited)
	case f.room == elsewhere:
		return "Every node that the scheduler asked about would pass a limit, and others have room: it is to try again on those."
	case f.room == passed:
		return "Every node would pass a limit and no pool can grow for the pod, it has waited for long enough, or it would evict others: limits do not count."
	}
	return fmt.Sprintf("%d of %d nodes are refused.", out.Refused, len(out.Nodes))
}

func (r Rules) filterMessage(v *verdict, n *FilterNode, room room) string {
	switch v.reason {
	case exempt:
		return "accepted, as on every node"
	case nominated:
		return "accepted: the scheduler has promised the node to the pod"
	case removing:
		return "refused: " + removedBy(v.pool)
	case overMemory:
		return over("memory", n.Memory, r.MemoryLimit, bytesText) + unheard(room)
	case overCPU:
		return over("CPU", n.CPU, r.CPULimit, coresText) + unheard(room)
	}
	if v.gap != noGap {
		return "accepted: " + v.gap.words()
	}
	return "accepted"
}

func over(what string, s *Share, limit float64, text func(float64) string) string {
	return fmt.Sprintf("%s up to %s predicted, %s for pods that came since and %s of this one would pass %.0f%% of %s",
		what, text(*s.Upper), text(s.Ledger), text(s.Pod), 100*limit, text(s.Allocatable))
}

func unheard(r room) string {
	if r == passed {
		return "; accepted, since no node is left"
	}
	return ": refused"
}

// removedBy says who removes a node: a pool, or a taint where that alone tells.
func removedBy(who string) string { return "it is being removed (" + who + ")" }

func (r Rules) scoreFinding(f *finding) *ScoreFinding {
	out := &ScoreFinding{Finding: f.told(), Nodes: make([]ScoredNode, len(f.verdicts))}
	for i := range f.verdicts {
		v := &f.verdicts[i]
		n := ScoredNode{
			Name: v.name, Score: int(v.score), Used: finite(v.used), Warmth: finite(v.warmth), Candidate: v.pool != "",
			Unknown: v.gap.told(), Pool: v.pool,
		}
		n.CPU, n.Memory = v.shares(f.pod.scheduled)
		n.Message = r.scoreMessage(v)
		out.Nodes[i] = n
	}
	out.Message = fmt.Sprintf("%d nodes are scored: the fuller the better up to %.0f%%, the emptier the better beyond.", len(out.Nodes), 100*r.Target)
	if len(f.verdicts) > 0 && f.verdicts[0].gap == gapView {
		out.Message = "All nodes are scored alike: " + gapView.words() + "."
	}
	return out
}

func (r Rules) scoreMessage(v *verdict) string {
	if v.gap == gapView {
		return gapView.words()
	}
	text := fmt.Sprintf("%.0f%% used with this pod", 100*v.used)
	if v.gap != noGap {
		text += ", by what is known: " + v.gap.words()
	}
	if v.warmth < 1 {
		text += fmt.Sprintf("; warming up, which leaves %.0f%% of the score", 100*v.warmth)
	}
	if v.second {
		text += "; one less than that is worth, so that one node is the best alone"
	}
	switch {
	case v.reason == removing:
		text += "; " + removedBy(v.pool)
	case v.pool != "":
		text += "; to be left empty, as the pool " + v.pool + " would remove it next"
	}
	return text
}

// told is the gap for those who read JSON.
func (g gap) told() string {
	if g == noGap {
		return ""
	}
	return g.String()
}

// words say the gap in words.
func (g gap) words() string {
	return [gaps]string{
		"all is known",
		"there is no view of the cluster, or it is too old",
		"the node is not known yet",
		"it is not known what can be allocated",
		"there is no prediction of its use, so that requests count",
		"the prediction of its use is too old, so that requests count",
	}[g]
}

// shares tells what counted with a pod of some size, nil if the node was not known.
func (v *verdict) shares(pod use) (cpu, memory *Share) {
	if v.gap == gapNode || v.cpu == (share{}) && v.memory == (share{}) {
		return nil, nil
	}
	amounts := pod.told()
	return v.cpu.told(amounts.CPU), v.memory.told(amounts.Memory)
}

func (s share) told(pod float64) *Share {
	out := &Share{Ledger: finite(s.ledger), Requested: finite(s.requested), Pod: pod, Allocatable: finite(s.allocatable)}
	if !math.IsNaN(float64(s.predicted)) {
		predicted, upper := finite(s.predicted), finite(s.upper)
		out.Predicted, out.Upper = &predicted, &upper
	}
	return out
}

// finite makes JSON of what may be beyond all bounds.
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

package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// View is an Explanation in words: those of Table, which the page of `foresail dashboard` shows as well.
type View struct {
	At         time.Time `json:"time"`
	Name       string    `json:"name"`
	Age        string    `json:"age"`
	Generation int64     `json:"generation"`

	Spec    []Fact       `json:"spec"`
	Now     []Fact       `json:"now"`
	Signals []SignalView `json:"signals"`
	Action  *ActionView  `json:"action"` // nil: none is open
	Held    []Fact       `json:"held"`   // what holds decisions back, or happens outside of the action

	Decisions       []DecisionView       `json:"decisions"`       // the newest first
	Recommendations []RecommendationView `json:"recommendations"` // of the newest decision

	Nodes         []NodeView `json:"nodes"`         // by name
	NodesError    string     `json:"nodesError"`    // why there are none
	Unschedulable *int       `json:"unschedulable"` // pods of the whole cluster
	Pods          []PodView  `json:"pods"`          // those of them that have waited for longest
}

// Fact is a line about something.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// SignalView is a signal with its numbers, or why it has none.
type SignalView struct {
	Name        string `json:"name"`
	Error       string `json:"error,omitempty"`
	Current     string `json:"current"`
	Predicted   string `json:"predicted"`
	Horizon     string `json:"horizon"`
	Threshold   string `json:"threshold"`
	Recommended string `json:"recommended"`
}

// ActionView is the open action. It has steps if its journal is known, else its progress.
type ActionView struct {
	Title    string     `json:"title"`
	Removes  string     `json:"removes,omitempty"`
	Progress string     `json:"progress,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Steps    []StepView `json:"steps,omitempty"`
}

// StepView is how far one node of an action is.
type StepView struct {
	Of        string `json:"of"`    // the number of a new node, or the name of one that goes
	State     string `json:"state"` // with since when
	Placement string `json:"placement"`
	Instance  string `json:"instance"` // the Node or the instance of a new one
	Error     string `json:"error"`
}

// DecisionView is a decision, or several equal ones in a row.
type DecisionView struct {
	When            string `json:"when"`
	Step            string `json:"step"`
	Reason          string `json:"reason"`
	Change          string `json:"change"`
	Message         string `json:"message"`
	Recommendations string `json:"recommendations"`
}

// RecommendationView is what one signal recommended.
type RecommendationView struct {
	Signal  string `json:"signal"`
	Workers string `json:"workers"`
	Reason  string `json:"reason"`
}

// NodeView is a node of the pool.
type NodeView struct {
	Node
	Age string `json:"age"`
}

// PodView is a pod that the scheduler finds no node for.
type PodView struct {
	Name   string `json:"name"`
	Age    string `json:"age"` // of its wait
	Reason string `json:"reason"`
}

// ViewOf puts an explanation into words.
func ViewOf(e Explanation) View {
	b := &viewer{Explanation: e}
	v := View{
		At: e.At, Name: e.Name, Age: age(e.At.Sub(e.Created.Time)), Generation: e.Generation,
		Spec: specFacts(&e.Spec), Now: b.state(), Signals: b.signals(), Action: b.action(), Held: b.held(),
		NodesError: e.NodesError, Unschedulable: e.Unschedulable, Recommendations: []RecommendationView{},
		Decisions: make([]DecisionView, 0, len(e.Status.Decisions)), Nodes: make([]NodeView, 0, len(e.Nodes)), Pods: make([]PodView, 0, len(e.Pods)),
	}
	for _, d := range e.Status.Decisions {
		v.Decisions = append(v.Decisions, DecisionView{
			When: when(d), Step: d.Step, Reason: d.Reason, Change: change(d), Message: d.Message, Recommendations: recommendationsOf(d.Recommendations),
		})
	}
	if len(e.Status.Decisions) > 0 {
		for _, r := range e.Status.Decisions[0].Recommendations {
			v.Recommendations = append(v.Recommendations, RecommendationView{Signal: r.Signal, Workers: known(r.Workers), Reason: r.Reason})
		}
	}
	for _, n := range e.Nodes {
		v.Nodes = append(v.Nodes, NodeView{Node: n, Age: age(e.At.Sub(n.Created.Time))})
	}
	for _, p := range e.Pods {
		v.Pods = append(v.Pods, PodView{Name: p.Namespace + "/" + p.Name, Age: age(e.At.Sub(p.Since)), Reason: p.Reason})
	}
	return v
}

// viewer writes the parts of a View.
type viewer struct{ Explanation }

func specFacts(spec *v1alpha1.WorkerPoolSpec) []Fact {
	s := spec.DeepCopy()
	s.Default() // it may come from elsewhere than an API server
	facts := []Fact{
		{"provider", providerOf(s.Provider)},
		{"workers", fmt.Sprintf("from %d to %d, at a time %s more and at most %d fewer", s.Min, s.Max, limit(*s.MaxBatchUp), *s.MaxBatchDown)},
		{"market", marketOf(s.Market)},
		{"cooldown", fmt.Sprintf("up %s, down %s; idle for %s", span(s.Cooldown.Up), span(s.Cooldown.Down), span(s.Idle.For))},
	}
	if s.DryRun {
		facts = append(facts, Fact{"dry run", "it decides and changes nothing"})
	}
	return facts
}

func marketOf(m v1alpha1.MarketPolicy) string {
	switch {
	case m.SpotRatio.IsZero():
		return "On-Demand"
	case m.OnDemandBase == 0:
		return percent(*m.SpotRatio) + " Spot"
	}
	return fmt.Sprintf("%d On-Demand, of the others %s Spot", m.OnDemandBase, percent(*m.SpotRatio))
}

func providerOf(p v1alpha1.PoolProvider) string {
	_, spec := p.Selected()
	if spec == nil {
		return "none"
	}
	return spec.Summary()
}

func (v *viewer) state() []Fact {
	s := &v.Status
	facts := []Fact{
		{"workers", fmt.Sprintf("%s that count, %s of them Ready, %s desired", known(s.Workers), known(s.ReadyWorkers), known(s.Desired))},
		{"pending pods", known(s.PendingPods)},
		{"a launch takes", span(s.StartupTime)},
		{"outdated", v.rollout()},
	}
	facts = append(facts, going(s)...)
	for _, c := range s.Conditions {
		facts = append(facts, Fact{c.Type, fmt.Sprintf("%s, %s: %s", c.Status, c.Reason, c.Message)})
	}
	if len(s.Conditions) == 0 {
		facts = append(facts, Fact{"status", "no status yet: is foresail run --enable nodepool running?"})
	}
	switch {
	case v.JournalError != "":
		facts = append(facts, Fact{"journal", "cannot be read: " + v.JournalError})
	case v.JournalAt != "":
		facts = append(facts, Fact{"journal", "in " + v.JournalAt})
	case v.Journal != nil:
		facts = append(facts, Fact{"leader", cmp.Or(v.Journal.Owner, "none at the moment")})
	}
	return facts
}

// rollout says how many workers are outdated. A report on an older generation of the spec says nothing about this one.
func (v *viewer) rollout() string {
	r := v.Status.Rollout
	if r == nil || v.Status.ObservedGeneration < v.Generation {
		return "unknown"
	}
	what := fmt.Sprint(r.Outdated)
	if r.Unknown > 0 {
		what += fmt.Sprintf(", and unknown of %d", r.Unknown)
	}
	if r.Message != "" {
		what += ": " + r.Message
	}
	return what
}

// going lists the nodes that are being removed, and the next candidates. An empty list is left out: it may mean that the status
// has not been written yet.
func going(s *v1alpha1.WorkerPoolStatus) []Fact {
	var facts []Fact
	if len(s.Terminating) > 0 {
		facts = append(facts, Fact{"terminating", fewOf(s.Terminating) + ": outside of any action, as the cloud reclaims them, they are repaired, or they never joined"})
	}
	if len(s.RemovalCandidates) > 0 {
		facts = append(facts, Fact{"removal candidates", fewOf(s.RemovalCandidates) + ": next if the load stays as low as it is; nothing is decided yet, and the scheduler extender prefers other nodes"})
	}
	return facts
}

func (v *viewer) signals() []SignalView {
	out := make([]SignalView, 0, len(v.Status.Signals))
	for _, s := range v.Status.Signals {
		out = append(out, SignalView{
			Name: s.Name, Error: s.Error, Current: decimal(s.Current), Predicted: decimal(s.Predicted), Horizon: span(s.Horizon),
			Threshold: threshold(v.Spec.Signals, s.Name), Recommended: recommended(s.Recommended),
		})
	}
	return out
}

// recommended returns "-" for a signal that only informs: it recommends nothing, and nothing is wrong with it.
func recommended(n *int32) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// threshold is that of a signal of the spec; others only inform.
func threshold(signals []v1alpha1.PoolSignal, name string) string {
	for i := range signals {
		if signals[i].Name == name {
			return decimal(&signals[i].Threshold)
		}
	}
	if len(signals) == 0 && name == "requests" {
		return "0.70"
	}
	return "-"
}

func (v *viewer) action() *ActionView {
	a := v.Status.Action
	if a == nil {
		return nil
	}
	out := &ActionView{Title: fmt.Sprintf("%s %s, started %s ago", a.Kind, a.ID, age(v.At.Sub(a.Started.Time))), Removes: fewOf(a.Nodes)}
	if v.Journal == nil || v.Journal.Action == nil {
		out.Progress = a.Progress
		return out
	}
	open := v.Journal.Action
	out.Reason = open.Message
	for i := range open.Slots {
		out.Steps = append(out.Steps, v.launch(&open.Slots[i]))
	}
	for i := range open.Targets {
		out.Steps = append(out.Steps, v.removal(&open.Targets[i]))
	}
	return out
}

func (v *viewer) launch(s *state.Slot) StepView {
	reached := string(s.State)
	if !s.Requested.IsZero() {
		reached += fmt.Sprintf(", requested %s ago", age(v.At.Sub(s.Requested)))
	}
	return StepView{
		Of: fmt.Sprintf("node %d", s.Number), State: reached, Placement: join(", ", s.Zone, s.InstanceType, string(s.Market)),
		Instance: cmp.Or(s.Node, s.InstanceID), Error: s.Error,
	}
}

func (v *viewer) removal(r *state.Removal) StepView {
	return StepView{Of: cmp.Or(r.Node, r.InstanceID), State: fmt.Sprintf("%s for %s", r.State, age(v.At.Sub(r.Since))), Placement: r.Zone, Error: r.Error}
}

func (v *viewer) held() []Fact {
	facts := v.aside()
	for _, n := range v.Nodes {
		if n.Blocked != "" {
			facts = append(facts, Fact{n.Name, "is not removed: " + n.Blocked})
		}
	}
	if v.NodesError != "" {
		facts = append(facts, Fact{"nodes", "what blocks their removal is not known: " + v.NodesError})
	}
	return facts
}

// aside lists what the journal holds beside the open action.
func (v *viewer) aside() []Fact {
	j, now := v.Journal, v.At
	facts := []Fact{}
	if j == nil {
		return facts
	}
	add := func(what, format string, args ...any) {
		facts = append(facts, Fact{what, fmt.Sprintf(format, args...)})
	}
	for _, r := range j.Interruptions {
		add(cmp.Or(r.Node, r.InstanceID), "is reclaimed by the cloud in %s: %s", age(r.Deadline.Sub(now)), r.State)
	}
	for _, r := range j.Repairs {
		add(cmp.Or(r.Node, r.InstanceID), "is drained and terminated, as it has been unhealthy for long: %s", join(", ", string(r.State), r.Error))
	}
	for _, r := range j.Endings {
		add(cmp.Or(r.Node, r.InstanceID), "is deleted once %s is gone, which was told to end %s ago", r.InstanceID, age(now.Sub(r.Since)))
	}
	for _, c := range j.PendingTerminations {
		add(c.InstanceID, "is terminated in %s: %s", age(c.Due.Sub(now)), c.Reason)
	}
	for _, c := range j.Cooling {
		if now.Before(c.Until) {
			what := join("/", c.Zone, c.Subnet, c.Quota, c.InstanceType, string(c.Market))
			add(cmp.Or(what, "every placement"), "is not launched for another %s: %s", age(c.Until.Sub(now)), c.Reason)
		}
	}
	for _, a := range j.Attempts {
		if now.Before(a.Until) {
			add(a.Pod, "gets no new node for another %s, nor do pods like it: what was launched for them took none (%s)", age(a.Until.Sub(now)), times(a.Failed))
		}
	}
	for _, instance := range slices.Sorted(maps.Keys(j.DrainBackoff)) {
		if until := j.DrainBackoff[instance]; now.Before(until) {
			add(instance, "is not drained for another %s: its last drain failed", age(until.Sub(now)))
		}
	}
	return facts
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", n)
}

// when is the time of a decision, and how often it was made.
func when(d v1alpha1.PoolDecision) string {
	at := d.Time.Format(time.DateTime)
	if d.Last == nil || d.Count < 2 {
		return at
	}
	return fmt.Sprintf("%s (%d times until %s)", at, d.Count, d.Last.Format(time.TimeOnly))
}

// change is the number of workers and the one that was decided on, unless there was nothing to decide from.
func change(d v1alpha1.PoolDecision) string {
	switch d.Reason {
	case string(nodepool.NotDecided), string(plan.WorkersUnknown):
		return "-"
	}
	return fmt.Sprintf("%d → %d", d.Workers, d.Desired)
}

func recommendationsOf(recommendations []v1alpha1.PoolRecommendation) string {
	var out []string
	for _, v := range recommendations {
		out = append(out, v.Signal+" "+known(v.Workers))
	}
	return strings.Join(out, ", ")
}

// namesTold is how many names a line has at most.
const namesTold = 10

// fewOf names the first of many.
func fewOf(names []string) string {
	text := strings.Join(names[:min(namesTold, len(names))], ", ")
	if more := len(names) - namesTold; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// join leaves out what is empty.
func join(separator string, parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, separator)
}

func known(n *int32) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

func limit(n int32) string {
	if n == 0 {
		return "any number"
	}
	return fmt.Sprintf("at most %d", n)
}

func decimal(q *resource.Quantity) string {
	if q == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", q.AsApproximateFloat64())
}

func percent(q resource.Quantity) string {
	return fmt.Sprintf("%.0f%%", 100*q.AsApproximateFloat64())
}

func span(d *metav1.Duration) string {
	if d == nil {
		return "-"
	}
	return age(d.Duration)
}

// age is a duration in its two largest units.
func age(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < 0:
		return "0s"
	case d < time.Hour:
		return short(d)
	case d < 48*time.Hour:
		return short(d.Round(time.Minute))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// short leaves out units that are 0.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

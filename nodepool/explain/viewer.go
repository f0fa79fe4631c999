package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// ViewOf returns the texts of an explanation.
func ViewOf(e Explanation) View {
	b := &viewer{Explanation: e}
	v := View{
		At: e.At, Name: e.Name, Age: age(e.At.Sub(e.Created.Time)), Generation: e.Generation,
		Spec: specFacts(&e.Spec), Now: b.state(), Signals: b.signals(), Action: b.action(), Held: b.held(),
		NodesError: e.NodesError, Unschedulable: e.Unschedulable, Recommendations: []RecommendationView{},
		Decisions: make([]DecisionView, 0, len(e.Status.Decisions)),
		Nodes:     make([]NodeView, 0, len(e.Nodes)), Pods: make([]PodView, 0, len(e.Pods)),
	}
	for _, d := range e.Status.Decisions {
		v.Decisions = append(v.Decisions, DecisionView{
			When: when(d), Step: d.Step, Reason: d.Reason, Change: change(d), Message: d.Message,
			Recommendations: recommendationsOf(d.Recommendations),
		})
	}
	if len(e.Status.Decisions) > 0 {
		for _, r := range e.Status.Decisions[0].Recommendations {
			v.Recommendations = append(v.Recommendations, RecommendationView{
				Signal: r.Signal, Workers: known(r.Workers), Reason: r.Reason,
			})
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

// viewer builds the parts of a View.
type viewer struct{ Explanation }

func specFacts(spec *v1alpha1.WorkerPoolSpec) []Fact {
	s := spec.DeepCopy()
	s.Default() // it may not come from an API server
	facts := []Fact{
		{"provider", providerOf(s.Provider)},
		{"workers", fmt.Sprintf("from %d to %d, at a time %s more",
			s.Min, s.Max, limit(*s.MaxBatchUp))},
		{"market", marketOf(s.Market)},
		{"cooldown", fmt.Sprintf("up %s, down %s; idle for %s",
			span(s.Cooldown.Up), span(s.Cooldown.Down), span(s.Idle.For))},
	}
	if s.DryRun {
		facts = append(facts, Fact{"dry run", "decisions are not carried out"})
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
		{"workers", fmt.Sprintf("%s that count, %s of them Ready, %s desired",
			known(s.Workers), known(s.ReadyWorkers), known(s.Desired))},
		{"pending pods", known(s.PendingPods)},
		{"a launch takes", span(s.StartupTime)},
		{"outdated", v.rollout()},
	}
	facts = append(facts, removalFacts(s)...)
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

// rollout returns how many workers are outdated. The status of an older generation does not apply to the spec.
func (v *viewer) rollout() string {
	r := v.Status.Rollout
	if r == nil || v.Status.ObservedGeneration < v.Generation {
		return "unknown"
	}
	text := fmt.Sprint(r.Outdated)
	if r.Unknown > 0 {
		text += fmt.Sprintf(", and unknown of %d", r.Unknown)
	}
	if r.Message != "" {
		text += ": " + r.Message
	}
	return text
}

// removalFacts returns the nodes that are being removed, and the next candidates. Empty lists are left out: the status
// may not have been written yet.
func removalFacts(s *v1alpha1.WorkerPoolStatus) []Fact {
	var facts []Fact
	if len(s.Terminating) > 0 {
		facts = append(facts, Fact{"terminating", fewOf(s.Terminating) +
			": outside of actions: reclaimed, repaired, or never joined"})
	}
	if len(s.RemovalCandidates) > 0 {
		facts = append(facts, Fact{"removal candidates", fewOf(s.RemovalCandidates) +
			": next if the load stays as low; the scheduler extender prefers other nodes"})
	}
	return facts
}

func (v *viewer) signals() []SignalView {
	out := make([]SignalView, 0, len(v.Status.Signals))
	for _, s := range v.Status.Signals {
		out = append(out, SignalView{
			Name: s.Name, Error: s.Error,
			Current: decimal(s.Current), Predicted: decimal(s.Predicted), Horizon: span(s.Horizon),
			Threshold: threshold(v.Spec.Signals, s.Name), Recommended: recommended(s.Recommended),
		})
	}
	return out
}

// recommended returns "-" for a signal of the idle rule, which recommends nothing.
func recommended(n *int32) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// threshold returns the threshold of a signal of the spec, "-" for a signal of the idle rule.
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
	out := &ActionView{
		Title:   fmt.Sprintf("%s %s, started %s ago", a.Kind, a.ID, age(v.At.Sub(a.Started.Time))),
		Removes: fewOf(a.Nodes),
	}
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
	current := string(s.State)
	if !s.Requested.IsZero() {
		current += fmt.Sprintf(", requested %s ago", age(v.At.Sub(s.Requested)))
	}
	return StepView{
		Of: fmt.Sprintf("node %d", s.Number), State: current,
		Placement: join(", ", s.Zone, s.InstanceType, string(s.Market)),
		Instance:  cmp.Or(s.Node, s.InstanceID), Error: s.Error,
	}
}

func (v *viewer) removal(r *state.Removal) StepView {
	return StepView{
		Of: cmp.Or(r.Node, r.InstanceID), State: fmt.Sprintf("%s for %s", r.State, age(v.At.Sub(r.Since))),
		Placement: r.Zone, Error: r.Error,
	}
}

func (v *viewer) held() []Fact {
	facts := v.outside()
	for _, n := range v.Nodes {
		if n.Blocked != "" {
			facts = append(facts, Fact{n.Name, "is not removed: " + n.Blocked})
		}
	}
	if v.NodesError != "" {
		facts = append(facts, Fact{"nodes", "it is unknown what blocks their removal: " + v.NodesError})
	}
	return facts
}

// outside returns what the journal has in addition to the open action.
func (v *viewer) outside() []Fact {
	j, now := v.Journal, v.At
	facts := []Fact{}
	if j == nil {
		return facts
	}
	add := func(name, format string, args ...any) {
		facts = append(facts, Fact{name, fmt.Sprintf(format, args...)})
	}
	for _, r := range j.Interruptions {
		add(cmp.Or(r.Node, r.InstanceID), "is reclaimed by the cloud in %s: %s", age(r.Deadline.Sub(now)), r.State)
	}
	for _, r := range j.Repairs {
		add(cmp.Or(r.Node, r.InstanceID), "is drained and terminated, as it has been unhealthy for long: %s",
			join(", ", string(r.State), r.Error))
	}
	for _, r := range j.Endings {
		add(cmp.Or(r.Node, r.InstanceID), "is deleted once %s is gone, whose termination was requested %s ago",
			r.InstanceID, age(now.Sub(r.Since)))
	}
	for _, c := range j.PendingTerminations {
		add(c.InstanceID, "is terminated in %s: %s", age(c.Due.Sub(now)), c.Reason)
	}
	for _, c := range j.Cooling {
		if now.Before(c.Until) {
			placement := join("/", c.Zone, c.Subnet, c.Quota, c.InstanceType, string(c.Market))
			add(cmp.Or(placement, "every placement"), "is not launched for another %s: %s", age(c.Until.Sub(now)), c.Reason)
		}
	}
	for _, a := range j.Attempts {
		if now.Before(a.Until) {
			add(a.Pod, "gets no new node for another %s, nor do pods like it: launched nodes took none (%s)",
				age(a.Until.Sub(now)), times(a.Failed))
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

// when returns the time of a decision, and how often it was made.
func when(d v1alpha1.PoolDecision) string {
	at := d.Time.Format(time.DateTime)
	if d.Last == nil || d.Count < 2 {
		return at
	}
	return fmt.Sprintf("%s (%d times until %s)", at, d.Count, d.Last.Format(time.TimeOnly))
}

// change returns the numbers of workers before and after a decision, "-" for a decision without observation.
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

package explain

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// Table writes an explanation for people.
func Table(w io.Writer, e Explanation) error {
	t := &table{tabs: tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.DiscardEmptyColumns), now: e.At}
	t.line("WorkerPool %s, %s old, generation %d", e.Name, age(e.At.Sub(e.Created.Time)), e.Generation)
	t.spec(&e)
	t.state(&e)
	t.signals(&e)
	t.action(&e)
	t.refused(&e)
	t.decisions(&e)
	if err := t.tabs.Flush(); err != nil {
		return err
	}
	return t.err
}

// table is a writer of lines, of which tabs make columns. It keeps the first error.
type table struct {
	tabs *tabwriter.Writer
	now  time.Time
	err  error
}

func (t *table) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.tabs, format+"\n", args...)
	}
}

// section begins a part of its own, with columns of its own.
func (t *table) section(format string, args ...any) {
	t.line("")
	if t.err == nil {
		t.err = t.tabs.Flush()
	}
	t.line(format, args...)
}

func (t *table) spec(e *Explanation) {
	s := e.Spec.DeepCopy()
	s.Default() // it may come from elsewhere than an API server
	t.line("  provider\t%s", providerOf(s.Provider))
	t.line("  workers\tfrom %d to %d, at most %s more at a time and %d fewer", s.Min, s.Max, limit(*s.MaxBatchUp), *s.MaxBatchDown)
	t.line("  market\t%s", marketOf(s.Market))
	t.line("  cooldown\tup %s, down %s; idle for %s", span(s.Cooldown.Up), span(s.Cooldown.Down), span(s.Idle.For))
	if s.DryRun {
		t.line("  dry run\tit decides and changes nothing")
	}
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

func (t *table) state(e *Explanation) {
	s := &e.Status
	t.section("Now")
	t.line("  workers\t%s that count, %s of them Ready, %s desired", known(s.Workers), known(s.ReadyWorkers), known(s.Desired))
	t.line("  pending pods\t%s", known(s.PendingPods))
	t.line("  a launch takes\t%s", span(s.StartupTime))
	t.rollout(e)
	t.going(s)
	for _, c := range s.Conditions {
		t.line("  %s\t%s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	if len(s.Conditions) == 0 {
		t.line("  no status yet: is foresail run --enable nodepool running?")
	}
	switch {
	case e.JournalError != "":
		t.line("  journal\tcannot be read: %s", e.JournalError)
	case e.JournalAt != "":
		t.line("  journal\tin %s", e.JournalAt)
	case e.Journal != nil:
		t.line("  leader\t%s", cmp.Or(e.Journal.Owner, "none at the moment"))
	}
}

// rollout shows how many workers are outdated. A report on an older generation of the spec says nothing about this one.
func (t *table) rollout(e *Explanation) {
	r := e.Status.Rollout
	if r == nil || e.Status.ObservedGeneration < e.Generation {
		t.line("  outdated\tunknown")
		return
	}
	what := fmt.Sprint(r.Outdated)
	if r.Unknown > 0 {
		what += fmt.Sprintf(", and unknown of %d", r.Unknown)
	}
	if r.Message != "" {
		what += ": " + r.Message
	}
	t.line("  outdated\t%s", what)
}

// going lists the nodes that are being removed, and the next candidates. An empty list is left out: it may mean that the status
// has not been written yet.
func (t *table) going(s *v1alpha1.WorkerPoolStatus) {
	if len(s.Terminating) > 0 {
		t.line("  terminating\t%s: outside of any action, as the cloud reclaims them, they are repaired, or they never joined", fewOf(s.Terminating))
	}
	if len(s.RemovalCandidates) > 0 {
		t.line("  removal candidates\t%s: next if the pool stays idle; nothing is decided yet, and the scheduler extender prefers other nodes", fewOf(s.RemovalCandidates))
	}
}

func (t *table) signals(e *Explanation) {
	if len(e.Status.Signals) == 0 {
		return
	}
	t.section("Signals")
	t.line("  NAME\tNOW\tPREDICTED\tIN\tTHRESHOLD\tRECOMMENDS\t")
	for _, s := range e.Status.Signals {
		if s.Error != "" {
			t.line("  %s\t%s", s.Name, s.Error)
			continue
		}
		t.line("  %s\t%s\t%s\t%s\t%s\t%s\t", s.Name, decimal(s.Current), decimal(s.Predicted), span(s.Horizon), threshold(e.Spec.Signals, s.Name), known(s.Recommended))
	}
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

func (t *table) action(e *Explanation) {
	a := e.Status.Action
	if a == nil {
		t.section("No action is open.")
		return
	}
	t.section("Open: %s %s, started %s ago", a.Kind, a.ID, age(t.now.Sub(a.Started.Time)))
	if len(a.Nodes) > 0 {
		t.line("  removes\t%s: in this order; the scheduler extender filters them", fewOf(a.Nodes))
	}
	if e.Journal == nil || e.Journal.Action == nil {
		t.line("  %s", a.Progress)
		return
	}
	open := e.Journal.Action
	t.line("  reason\t%s", open.Message)
	for _, s := range open.Slots {
		what := join(", ", s.Zone, s.InstanceType, string(s.Market))
		t.line("  node %d\t%s\t%s\t%s\t%s", s.Number, s.State, what, cmp.Or(s.Node, s.InstanceID), s.Error)
	}
	for _, r := range open.Targets {
		t.removal(r)
	}
}

func (t *table) removal(r state.Removal) {
	t.line("  %s\t%s for %s\t%s\t%s", cmp.Or(r.Node, r.InstanceID), r.State, age(t.now.Sub(r.Since)), r.Zone, r.Error)
}

// refused lists what holds the next decisions back, and what happens beside them.
func (t *table) refused(e *Explanation) {
	lines := e.pending(t.now)
	for _, n := range e.Nodes {
		if n.Blocked != "" {
			lines = append(lines, n.Name+"\tis not removed: "+n.Blocked)
		}
	}
	if e.NodesError != "" {
		lines = append(lines, "nodes\twhat blocks their removal is not known: "+e.NodesError)
	}
	if len(lines) == 0 {
		return
	}
	t.section("What holds decisions back, or happens outside of the action")
	for _, l := range lines {
		t.line("  %s", l)
	}
}

// pending lists what the journal holds beside the open action.
func (e *Explanation) pending(now time.Time) []string {
	j := e.Journal
	if j == nil {
		return nil
	}
	var lines []string
	add := func(what, format string, args ...any) {
		lines = append(lines, what+"\t"+fmt.Sprintf(format, args...))
	}
	for _, r := range j.Interruptions {
		add(cmp.Or(r.Node, r.InstanceID), "is reclaimed by the cloud in %s: %s", age(r.Deadline.Sub(now)), r.State)
	}
	for _, r := range j.Repairs {
		add(cmp.Or(r.Node, r.InstanceID), "is drained and terminated, as it has been unhealthy for long: %s", join(", ", string(r.State), r.Error))
	}
	for _, c := range j.PendingTerminations {
		add(c.InstanceID, "is terminated in %s: %s", age(c.Due.Sub(now)), c.Reason)
	}
	for _, c := range j.Cooling {
		if now.Before(c.Until) {
			add(join("/", c.Zone, c.InstanceType, string(c.Market)), "is not launched for another %s: %s", age(c.Until.Sub(now)), c.Reason)
		}
	}
	for _, instance := range slices.Sorted(maps.Keys(j.DrainBackoff)) {
		if until := j.DrainBackoff[instance]; now.Before(until) {
			add(instance, "is not drained for another %s: its last drain failed", age(until.Sub(now)))
		}
	}
	return lines
}

func (t *table) decisions(e *Explanation) {
	if len(e.Status.Decisions) == 0 {
		t.section("No decision yet.")
		return
	}
	t.section("Decisions, the newest first")
	for _, d := range e.Status.Decisions {
		t.line("  %s\t%s\t%s\t%s", when(d), d.Step+" "+d.Reason, change(d), d.Message)
		if recommendations := recommendationsOf(d.Recommendations); recommendations != "" && d.Step != "Hold" {
			t.line("  \t\t\t%s", recommendations)
		}
	}
	if recommendations := recommendationsOf(e.Status.Decisions[0].Recommendations); recommendations != "" {
		t.section("Recommendations of the newest decision: %s", recommendations)
		for _, v := range e.Status.Decisions[0].Recommendations {
			t.line("  %s\t%s\t%s", v.Signal, known(v.Workers), v.Reason)
		}
	}
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
	return fmt.Sprint(n)
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

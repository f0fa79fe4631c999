package explain

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Table writes an explanation as text.
func Table(w io.Writer, e Explanation) error {
	v := ViewOf(e)
	t := &table{tabs: tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.DiscardEmptyColumns)}
	t.line("WorkerPool %s, %s old, generation %d", v.Name, v.Age, v.Generation)
	t.facts(v.Spec)
	t.section("Now")
	t.facts(v.Now)
	t.signals(&v)
	t.action(v.Action)
	t.held(&v)
	t.unschedulable(&v)
	t.decisions(&v)
	if err := t.tabs.Flush(); err != nil {
		return err
	}
	return t.err
}

// table writes lines whose tabs separate columns. It keeps the first error.
type table struct {
	tabs *tabwriter.Writer
	err  error
}

func (t *table) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.tabs, format+"\n", args...)
	}
}

// section begins a part with its own columns.
func (t *table) section(format string, args ...any) {
	t.line("")
	if t.err == nil {
		t.err = t.tabs.Flush()
	}
	t.line(format, args...)
}

func (t *table) facts(facts []Fact) {
	for _, f := range facts {
		t.line("  %s\t%s", f.Name, f.Text)
	}
}

func (t *table) signals(v *View) {
	if len(v.Signals) == 0 {
		return
	}
	t.section("Signals")
	t.line("  NAME\tNOW\tPREDICTED\tIN\tTHRESHOLD\tRECOMMENDS\t")
	for _, s := range v.Signals {
		if s.Error != "" {
			t.line("  %s\t%s", s.Name, s.Error)
			continue
		}
		t.line("  %s\t%s\t%s\t%s\t%s\t%s\t", s.Name, s.Current, s.Predicted, s.Horizon, s.Threshold, s.Recommended)
	}
}

func (t *table) action(a *ActionView) {
	if a == nil {
		t.section("No action is open.")
		return
	}
	t.section("Open: %s", a.Title)
	if a.Removes != "" {
		t.line("  removes\t%s: in this order; the scheduler extender filters them", a.Removes)
	}
	if a.Progress != "" {
		t.line("  %s", a.Progress)
	}
	if a.Reason != "" {
		t.line("  reason\t%s", a.Reason)
	}
	for _, s := range a.Steps {
		t.line("  %s\t%s\t%s\t%s\t%s", s.Of, s.State, s.Placement, s.Instance, s.Error)
	}
}

// held lists what holds the next decisions back, and what happens outside of the action.
func (t *table) held(v *View) {
	if len(v.Held) == 0 {
		return
	}
	t.section("What holds decisions back, or happens outside of the action")
	t.facts(v.Held)
}

// maxPodsListed bounds the unschedulable pods in the table.
const maxPodsListed = 10

func (t *table) unschedulable(v *View) {
	if v.Unschedulable == nil || *v.Unschedulable == 0 {
		return
	}
	t.section("Pods of the cluster that the scheduler finds no node for: %d", *v.Unschedulable)
	for _, p := range v.Pods[:min(maxPodsListed, len(v.Pods))] {
		t.line("  %s\tfor %s\t%s", p.Name, p.Age, p.Reason)
	}
}

func (t *table) decisions(v *View) {
	if len(v.Decisions) == 0 {
		t.section("No decision yet.")
		return
	}
	t.section("Decisions, the newest first")
	for _, d := range v.Decisions {
		t.line("  %s\t%s\t%s\t%s", d.When, d.Step+" "+d.Reason, d.Change, d.Message)
		if d.Recommendations != "" && d.Step != "Hold" {
			t.line("  \t\t\t%s", d.Recommendations)
		}
	}
	if newest := v.Decisions[0].Recommendations; newest != "" {
		t.section("Recommendations of the newest decision: %s", newest)
		for _, r := range v.Recommendations {
			t.line("  %s\t%s\t%s", r.Signal, r.Workers, r.Reason)
		}
	}
}

package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/foresail/foresail/test/env/stack"
	"github.com/foresail/foresail/test/env/terminal"
)

// comparison is what two runs of one load came to.
type comparison struct {
	predicted, reactive stack.Run
	steps               []rise
}

// rise is when a count of replicas was first asked for; nil for never.
type rise struct {
	replicas            int
	predicted, reactive *time.Duration
}

func compare(predicted, reactive stack.Run) comparison {
	c := comparison{predicted: predicted, reactive: reactive}
	for n := predicted.App.Replicas + 1; n <= max(predicted.Peak(), reactive.Peak()); n++ {
		c.steps = append(c.steps, rise{n, reached(predicted, n), reached(reactive, n)})
	}
	return c
}

func reached(r stack.Run, replicas int) *time.Duration {
	if at, ok := r.Reached(replicas); ok {
		return &at
	}
	return nil
}

// lead is how much earlier the forecast asked for a count of replicas, on average over those that
// both asked for; false if there are none.
func (c comparison) lead() (time.Duration, bool) {
	var sum time.Duration
	n := 0
	for _, s := range c.steps {
		if s.predicted != nil && s.reactive != nil {
			sum += *s.reactive - *s.predicted
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / time.Duration(n), true
}

// unanswered counts the requests without a good answer.
func unanswered(r stack.Run) int {
	return r.Report.Failed + r.Report.TimedOut + r.Report.Dropped
}

// summary is printed at the end.
func (c comparison) summary() string {
	var b strings.Builder
	b.WriteString("\n" + c.table() + "\n" + c.rises() + "\n")
	for _, row := range terminal.Wrap(c.verdict(), 78, 10) {
		b.WriteString(row + "\n")
	}
	b.WriteString("One ramp on one machine: an HPA looks every 15 s, and where in these 15 s a rise\nfalls moves each figure by some seconds. Run it again before believing it.\n")
	if seen, all := len(c.predicted.Moments), c.seconds(); float64(seen) < 0.9*all {
		fmt.Fprintf(&b, "This machine was too busy to look at more than %d of %.0f seconds, which blurs the figures.\n",
			seen, all)
	}
	return b.String()
}

// seconds is how long the run was looked at.
func (c comparison) seconds() float64 {
	m := c.predicted.Moments
	if len(m) == 0 {
		return 0
	}
	return m[len(m)-1].At.Seconds()
}

func (c comparison) table() string {
	var b strings.Builder
	row := func(name, predicted, reactive string) {
		fmt.Fprintf(&b, "  %-36s %12s %12s\n", name, predicted, reactive)
	}
	each := func(name string, value func(stack.Run) string) { row(name, value(c.predicted), value(c.reactive)) }
	percentile := func(of func(stack.Run) time.Duration) func(stack.Run) string {
		return func(r stack.Run) string { return latency(of(r), r.Report.Latency.Count) }
	}
	row("", c.predicted.App.Name, c.reactive.App.Name)
	each("answered with success", func(r stack.Run) string { return percent(r.Report.Success()) })
	each("latency p50", percentile(func(r stack.Run) time.Duration { return r.Report.Latency.P50 }))
	each("latency p90", percentile(func(r stack.Run) time.Duration { return r.Report.Latency.P90 }))
	each("latency p99", percentile(func(r stack.Run) time.Duration { return r.Report.Latency.P99 }))
	each("failed or timed out", func(r stack.Run) string { return fmt.Sprint(r.Report.Failed + r.Report.TimedOut) })
	each("dropped unsent", func(r stack.Run) string { return fmt.Sprint(r.Report.Dropped) })
	each("seconds above the threshold", func(r stack.Run) string { return fmt.Sprint(r.SecondsAbove()) })
	each("seconds in which queues grow", func(r stack.Run) string { return fmt.Sprint(r.SecondsOverloaded()) })
	each("most replicas", func(r stack.Run) string { return fmt.Sprint(r.Peak()) })
	each("pod-seconds", func(r stack.Run) string { return fmt.Sprint(r.PodSeconds()) })
	return b.String()
}

func percent(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100*share)
}

// rises lists when each count of replicas was asked for.
func (c comparison) rises() string {
	var b strings.Builder
	row := func(cells ...any) { fmt.Fprintf(&b, "  %-36s %12s %12s %14s\n", cells...) }
	row("replicas asked for after", c.predicted.App.Name, c.reactive.App.Name, "earlier by")
	for _, s := range c.steps {
		by := "-"
		if s.predicted != nil && s.reactive != nil {
			by = wholeSeconds(*s.reactive - *s.predicted)
		}
		row(fmt.Sprintf("%d", s.replicas), at(s.predicted), at(s.reactive), by)
	}
	if lead, ok := c.lead(); ok {
		row("on average", "", "", wholeSeconds(lead))
	}
	return b.String()
}

// wholeSeconds rounds to seconds, of which none is "0 s" from either side.
func wholeSeconds(d time.Duration) string {
	return fmt.Sprintf("%d s", int(math.Round(d.Seconds())))
}

func at(d *time.Duration) string {
	if d == nil {
		return "never"
	}
	return terminal.Clock(*d)
}

// verdict sums the runs up in a sentence, whichever way they went.
func (c comparison) verdict() string {
	p, r := c.predicted, c.reactive
	p90 := func(run stack.Run) string { return latency(run.Report.Latency.P90, run.Report.Latency.Count) }
	p99 := func(run stack.Run) string { return latency(run.Report.Latency.P99, run.Report.Latency.Count) }
	parts := []string{
		"the load was above the threshold for " + versus(fmt.Sprintf("%d s", p.SecondsAbove()),
			fmt.Sprintf("%d s", r.SecondsAbove())),
		"p90 was " + versus(p90(p), p90(r)),
		"p99 " + versus(p99(p), p99(r)),
		"the requests without a good answer were " + versus(fmt.Sprint(unanswered(p)), fmt.Sprint(unanswered(r))),
	}
	if lead, ok := c.lead(); ok {
		parts = append([]string{"replicas were asked for " + earlier(lead) + " on average"}, parts...)
	}
	return fmt.Sprintf("%s %s, and %s, for %s.", c.outcome(), strings.Join(parts[:len(parts)-1], ", "),
		parts[len(parts)-1], c.cost())
}

// versus sets two figures against each other.
func versus(with, without string) string {
	if with == without {
		return with + " either way"
	}
	return with + " instead of " + without
}

func earlier(lead time.Duration) string {
	switch seconds := math.Round(lead.Seconds()); {
	case seconds > 0:
		return fmt.Sprintf("%.0f s earlier", seconds)
	case seconds < 0:
		return fmt.Sprintf("%.0f s later", -seconds)
	}
	return "at the same time"
}

// cost compares pod-seconds.
func (c comparison) cost() string {
	p, r := float64(c.predicted.PodSeconds()), float64(c.reactive.PodSeconds())
	switch change := math.Round(100 * (p/r - 1)); {
	case r == 0 || change == 0:
		return "the same pod-seconds"
	case change > 0:
		return fmt.Sprintf("%.0f %% more pod-seconds", change)
	default:
		return fmt.Sprintf("%.0f %% fewer pod-seconds", -change)
	}
}

// outcome weighs what users notice: overload, latency and lost requests. Differences too small to
// mean anything count as none.
func (c comparison) outcome() string {
	p, r := c.predicted, c.reactive
	better, worse := 0, 0
	weigh := func(with, without, slack float64) {
		switch {
		case with < without-slack:
			better++
		case with > without+slack:
			worse++
		}
	}
	weigh(float64(p.SecondsAbove()), float64(r.SecondsAbove()), 2)
	weigh(p.Report.Latency.P90.Seconds(), r.Report.Latency.P90.Seconds(), 0.1*r.Report.Latency.P90.Seconds())
	weigh(float64(unanswered(p)), float64(unanswered(r)), 0.001*float64(r.Report.Sent+r.Report.Dropped))
	switch {
	case better > 0 && worse == 0:
		return "In this run the forecast helped:"
	case worse > 0 && better == 0:
		return "In this run the forecast did harm:"
	case better > 0:
		return "In this run the forecast helped in some respects and did harm in others:"
	}
	return "In this run the forecast made no difference worth the name:"
}

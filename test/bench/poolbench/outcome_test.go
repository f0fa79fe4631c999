package poolbench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// outcome is what a run came to.
type outcome struct {
	made      int             // pods, ever
	waits     []time.Duration // of each pod from its creation until a node took it, or until it was removed
	nodeTime  time.Duration   // that instances were paid for
	peak      int             // instances
	launches  int
	removals  int
	evictions int
	seenAt    time.Time
}

// see adds up what instances cost since the last look.
func (o *outcome) see(p *play, now time.Time) {
	paid := 0
	for _, m := range p.machines {
		if m.endedAt.IsZero() {
			paid++
		}
	}
	if !p.counting.IsZero() {
		o.nodeTime += time.Duration(paid) * now.Sub(o.seenAt)
		o.peak = max(o.peak, paid)
	}
	o.seenAt = now
}

// waited notes how long a pod has waited.
func (o *outcome) waited(p *play, d *podPlayed, until time.Time) {
	if !p.counting.IsZero() && !d.created.Before(p.counting) {
		o.waits = append(o.waits, until.Sub(d.created))
	}
}

func (o *outcome) count(p *play, n *int) {
	if !p.counting.IsZero() {
		*n++
	}
}

// total is the sum of all waits: pending pod-seconds.
func (o *outcome) total() (sum time.Duration) {
	for _, w := range o.waits {
		sum += w
	}
	return sum
}

// late counts the pods that did not find a node at once; the scheduler takes some milliseconds itself.
func (o *outcome) late() (n int) {
	for _, w := range o.waits {
		if w >= time.Second {
			n++
		}
	}
	return n
}

// quantile is the wait that a share of all pods does not exceed.
func (o *outcome) quantile(share float64) time.Duration {
	if len(o.waits) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(o.waits))
	return sorted[int(share*float64(len(sorted)-1))]
}

// named is an outcome of a variant.
type named struct {
	name string
	outcome
}

// printTable prints outcomes side by side.
func printTable(out io.Writer, title string, all []named) {
	fmt.Fprintf(out, "%s\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tpods\tlate\tp50 s\tp90 s\tp99 s\tmax s\tpending pod-s\tnode-hours\tpeak\tlaunched\tremoved\tevicted\t")
	for _, o := range all {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t%d\t%d\t%d\t%d\t\n", o.name, len(o.waits),
			o.late(),
			o.quantile(0.5).Seconds(), o.quantile(0.9).Seconds(), o.quantile(0.99).Seconds(), o.quantile(1).Seconds(),
			o.total().Seconds(), o.nodeTime.Hours(), o.peak, o.launches, o.removals, o.evictions)
	}
	_ = w.Flush() // to a buffer
}

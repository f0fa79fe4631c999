package cost

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/foresail/foresail/nodepool/prices"
)

// Table writes a report as text.
func Table(w io.Writer, r *Report) error {
	tabs := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.DiscardEmptyColumns)
	var err error
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(tabs, format+"\n", args...)
		}
	}
	line("WorkerPool %s, %s to %s", r.Pool, r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339))
	line("  known\t%.1f h of %.1f h%s", r.KnownHours, r.KnownHours+r.UnknownHours, gap(r))
	line("  workers\t%.1f on average, at most %d, of %d to %d", r.WorkerHours/r.KnownHours, r.MaxWorkers, r.Min, r.Max)
	line("  worker hours\t%.1f; %.1f desired", r.WorkerHours, r.DesiredHours)
	line("  idle\t%.1f worker hours beyond the desired count", r.IdleHours)
	line("  short\t%.1f worker hours desired and missing; more than the maximum recommended during %.1f h",
		r.ShortHours, r.AtMaximumHours)
	line("  gone\t%.1f worker hours of workers that were terminating or failed, in no other figure", r.GoneHours)
	line("  pending\t%s", pendingOf(r))
	line("  spot\t%s", spotOf(r))
	line("")
	line("INSTANCE TYPE\tMARKET\tHOURS\tUSD/HOUR\tUSD")
	for _, u := range r.Usage {
		line("%s\t%s\t%.1f\t%s\t%s", u.InstanceType, u.Market, u.Hours, money(u.PriceUSD, 4), money(u.CostUSD, 2))
	}
	line("")
	line("%s", costLine(r))
	line("")
	line("Advice")
	for _, a := range r.Advice {
		line("  - %s", a.Text)
	}
	if len(r.Advice) == 0 {
		line("  %s", noAdvice(r))
	}
	if err != nil {
		return err
	}
	return tabs.Flush()
}

// Summary returns a report in a few lines, for a message.
func Summary(r *Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Worker pool %s, %s to %s: %.1f h of %.1f h known%s. ",
		r.Pool, r.From.UTC().Format(time.DateOnly), r.To.UTC().Format(time.DateOnly),
		r.KnownHours, r.KnownHours+r.UnknownHours, gap(r))
	fmt.Fprintf(&b, "%.1f worker hours, %.1f desired, %.1f idle. Spot: %s.\n%s",
		r.WorkerHours, r.DesiredHours, r.IdleHours, spotOf(r), costLine(r))
	for _, a := range r.Advice {
		fmt.Fprintf(&b, "\n• %s", a.Text)
	}
	return b.String()
}

func gap(r *Report) string {
	if r.UnknownHours == 0 {
		return ""
	}
	return fmt.Sprintf("; %.1f h are unknown and in no figure", r.UnknownHours)
}

func pendingOf(r *Report) string {
	if r.PendingHours == nil {
		return "unknown"
	}
	return fmt.Sprintf("pods waited for a node during %.1f h of %.1f h", *r.PendingHours, r.PendingOfHours)
}

func spotOf(r *Report) string {
	switch {
	case r.SpotShare == nil:
		return "there were no workers"
	case r.SpotTarget == nil:
		return percent(*r.SpotShare) + " of the worker hours"
	}
	return fmt.Sprintf("%s of the worker hours, and the market policy aims at %s",
		percent(*r.SpotShare), percent(*r.SpotTarget))
}

func costLine(r *Report) string {
	if len(r.MissingPrices) > 0 {
		return fmt.Sprintf("Costs are unknown: there is no price of %s. Prices are given as %s",
			strings.Join(r.MissingPrices, ", "), prices.Help)
	}
	if r.Cost == nil {
		return "There were no workers and no costs."
	}
	out := fmt.Sprintf(
		"It cost %.2f USD, and would have cost %.2f USD at the desired count; %.2f USD were for idle workers.",
		r.Cost.USD, r.Cost.DesiredUSD, r.Cost.IdleUSD)
	if r.OnDemandCostUSD != nil {
		out += fmt.Sprintf(" On-Demand alone would have been %.2f USD.", *r.OnDemandCostUSD)
	}
	return out
}

func money(usd *float64, digits int) string {
	if usd == nil {
		return "?"
	}
	return fmt.Sprintf("%.*f", digits, *usd)
}

func noAdvice(r *Report) string {
	if r.AdviceMissing != "" {
		return "none yet: " + r.AdviceMissing
	}
	return "none: no rule found a setting to improve"
}

package report

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
)

const (
	// reportRetry is how long after one that failed a report is tried again.
	reportRetry = 5 * time.Minute
	// reportTries is how often it is tried in all.
	reportTries = 12
)

// CostReports are summaries that people are sent at regular times: multiples of Every since a Monday at midnight UTC, so that
// nothing need be kept to know when the next one is due. The replica that leads by then makes it. A report whose time
// comes while no replica leads is left out.
type CostReports struct {
	Every time.Duration
	// Make returns the report of a pool up to a time.
	Make func(ctx context.Context, pool string, to time.Time) (string, error)
}

// falls returns whether a report has become due since the previous cycle, and the end of its period.
func (r *CostReports) falls(before, now time.Time) (time.Time, bool) {
	due := now.Truncate(r.Every) // of a time.Time, which counts from a Monday
	return due, !before.IsZero() && before.Before(due)
}

// noteReport has a report made if its time has come.
func (t *Reporter) noteReport(now time.Time, leading bool) {
	if t.options.CostReports == nil {
		return
	}
	due, falls := t.options.CostReports.falls(t.ticked, now)
	t.ticked = now
	if !falls || !leading {
		return
	}
	select {
	case t.reports <- due:
	default: // the one before is still being tried
		t.options.Metrics.failed.WithLabelValues("report").Inc()
	}
}

// runReports makes reports that are due until ctx ends.
func (t *Reporter) runReports(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case due := <-t.reports:
			t.report(ctx, due)
		}
	}
}

// report makes one, and tries again if it cannot be made.
func (t *Reporter) report(ctx context.Context, due time.Time) {
	for try := 1; ; try++ {
		text, err := t.options.CostReports.Make(ctx, t.pool, due)
		if err == nil {
			klog.FromContext(ctx).Info("Cost report", "to", due, "report", text)
			t.say(text)
			return
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return
		}
		t.sent(ctx, "report", err)
		if try == reportTries {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reportRetry):
		}
	}
}

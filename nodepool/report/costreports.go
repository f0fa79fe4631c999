package report

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
)

const (
	// costRetry is the delay before a failed cost report is tried again.
	costRetry = 5 * time.Minute
	// costTries is how often a cost report is tried.
	costTries = 12
)

// CostReports are summaries for people at regular times: multiples of Every since a Monday at midnight UTC, so that no
// state is needed to know when the next one is due. The replica that leads at that time makes it; if none leads, there
// is no report.
type CostReports struct {
	Every time.Duration
	// Make returns the report of a pool up to a time.
	Make func(ctx context.Context, pool string, to time.Time) (string, error)
}

// costReporter makes the cost reports of one pool when they are due.
type costReporter struct {
	pool     string
	options  CostReports
	notifier *notifier

	last time.Time      // of schedule
	due  chan time.Time // end of the period of the next report
}

func newCostReporter(pool string, o CostReports, n *notifier) *costReporter {
	return &costReporter{pool: pool, options: o, notifier: n, due: make(chan time.Time, 1)}
}

// schedule queues a report if one has become due since the previous cycle.
func (r *costReporter) schedule(now time.Time, leading bool) {
	due := now.Truncate(r.options.Every) // time.Time counts from a Monday
	missed := !r.last.IsZero() && r.last.Before(due)
	r.last = now
	if !missed || !leading {
		return
	}
	select {
	case r.due <- due:
	default: // the previous report is still being tried
		r.notifier.metrics.failed.WithLabelValues("report").Inc()
	}
}

// run makes queued reports until ctx ends.
func (r *costReporter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case due := <-r.due:
			r.make(ctx, due)
		}
	}
}

// make makes a report, with retries.
func (r *costReporter) make(ctx context.Context, due time.Time) {
	for try := 1; ; try++ {
		text, err := r.options.Make(ctx, r.pool, due)
		if err == nil {
			klog.FromContext(ctx).Info("Cost report", "to", due, "report", text)
			r.notifier.queue(text)
			return
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return
		}
		r.notifier.check(ctx, "report", err)
		if try == costTries {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(costRetry):
		}
	}
}

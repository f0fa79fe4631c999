package report

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
)

const week = 7 * 24 * time.Hour

// costs are the cost reports of a run: when they were made, up to when, and the messages.
type costs struct {
	at, upTo []time.Time
	messages []string
	metrics  *Metrics
}

// runCosts runs a reporter with cost reports for some hours, in virtual time with a tick every hour. lead reports
// whether it leads at a time.
func runCosts(t *testing.T, hours int, lead func(at time.Time) bool, answer func(to time.Time) error) (out costs) {
	t.Helper()
	build := func(_ context.Context, pool string, to time.Time) (string, error) {
		out.at, out.upTo = append(out.at, time.Now().UTC()), append(out.upTo, to.UTC())
		return "cost of " + pool, answer(to)
	}
	h := newHarness(t, func(o *Options) { o.CostReports = &CostReports{Every: week, Make: build} })
	out.metrics = h.metrics
	// The messages are read here rather than by a webhook.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); h.reporter.costs.run(ctx) }()
	for range hours {
		cycle := hold(time.Now(), plan.NothingToDo, "")
		cycle.Leading = lead(cycle.At)
		h.reporter.Report(ctx, cycle)
		synctest.Wait()
		time.Sleep(time.Hour)
		for len(h.reporter.notifier.messages) > 0 {
			out.messages = append(out.messages, <-h.reporter.notifier.messages)
		}
	}
	cancel()
	<-ended
	return out
}

func always(time.Time) bool { return true }

// untilMonday advances virtual time to a duration before the midnight of a Monday, and returns that midnight.
func untilMonday(before time.Duration) time.Time {
	now := time.Now().UTC()
	monday := time.Date(now.Year(), now.Month(), now.Day()+(8-int(now.Weekday()))%7, 0, 0, 0, 0, time.UTC)
	for monday.Add(-before).Before(now) {
		monday = monday.AddDate(0, 0, 7)
	}
	time.Sleep(monday.Add(-before).Sub(now))
	return monday
}

func TestCostReportsAreMadeOnMondays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		monday := untilMonday(3 * time.Hour)
		got := runCosts(t, 24*15, always, func(time.Time) error { return nil })
		assert.Equal(t, []time.Time{monday, monday.Add(week), monday.Add(2 * week)}, got.upTo)
		assert.Equal(t, got.upTo, got.at)
		assert.Equal(t, []string{"cost of workers", "cost of workers", "cost of workers"}, got.messages)
	})
}

func TestTheLeaderMakesCostReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		monday := untilMonday(time.Hour)
		lead := func(at time.Time) bool { return at.After(monday) }
		got := runCosts(t, 3, lead, func(time.Time) error { return nil })
		assert.Empty(t, got.at, "another replica led at that time and has made it")
		assert.Empty(t, got.messages)
	})
	synctest.Test(t, func(t *testing.T) {
		untilMonday(0)
		got := runCosts(t, 3, always, func(time.Time) error { return nil })
		assert.Empty(t, got.at, "a process that starts at that time does not know whether it was made")
	})
}

func TestFailedCostReportsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		monday := untilMonday(time.Hour)
		tries := 0
		got := runCosts(t, 3, always, func(time.Time) error {
			if tries++; tries < 3 {
				return errors.New("no answer")
			}
			return nil
		})
		assert.Equal(t, []time.Time{monday, monday.Add(5 * time.Minute), monday.Add(10 * time.Minute)}, got.at)
		assert.Equal(t, []time.Time{monday, monday, monday}, got.upTo)
		assert.Equal(t, []string{"cost of workers"}, got.messages)
		assert.Equal(t, 2.0, testutil.ToFloat64(got.metrics.failed.WithLabelValues("report")))
	})
	synctest.Test(t, func(t *testing.T) {
		untilMonday(time.Hour)
		got := runCosts(t, 24, always, func(time.Time) error { return errors.New("no answer") })
		assert.Len(t, got.at, costTries)
		assert.Empty(t, got.messages)
	})
}

func TestRunMakesCostReportsUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ string, _ time.Time) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		h := newHarness(t, func(o *Options) { o.CostReports = &CostReports{Every: time.Hour, Make: hang} })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.reporter.Run(ctx) }()
		for range 4 { // the first is being made, the second is queued, the third is dropped
			h.reporter.Report(ctx, hold(time.Now(), plan.NothingToDo, ""))
			synctest.Wait()
			time.Sleep(time.Hour)
		}
		failed := h.metrics.failed.WithLabelValues("report")
		assert.Equal(t, 1.0, testutil.ToFloat64(failed))
		cancel()
		require.NoError(t, <-ended)
		assert.Equal(t, 1.0, testutil.ToFloat64(failed), "an end is no failure")
	})
}

func TestNoNumbersWithoutADecision(t *testing.T) {
	h := newHarness(t)
	count := func() int {
		n, err := testutil.GatherAndCount(
			h.registry, "foresail_nodepool_desired_workers", "foresail_nodepool_recommended_workers",
		)
		require.NoError(t, err)
		return n
	}
	h.reporter.Report(t.Context(), hold(start, plan.NothingToDo, ""))
	require.Equal(t, 2, count())
	for _, reason := range []plan.Reason{nodepool.NotDecided, plan.WorkersUnknown} {
		h.reporter.Report(t.Context(), hold(start.Add(time.Minute), reason, ""))
		assert.Zero(t, count(), reason)
		assert.Nil(t, h.status(t).Desired, reason)
		h.reporter.Report(t.Context(), hold(start.Add(2*time.Minute), plan.NothingToDo, ""))
		assert.Equal(t, 2, count())
	}
	assert.Zero(t, testutil.ToFloat64(h.metrics.events.WithLabelValues("workers", string(journal.EventLaunchFailed))))
	cycle := hold(start, plan.NothingToDo, "")
	cycle.Snapshot.Pool = plan.Pool{SpotRatio: 0.7, OnDemandBase: 1}
	for range 3 {
		cycle.Snapshot.Instances = append(cycle.Snapshot.Instances, plan.Instance{Worker: true})
	}
	h.reporter.Report(t.Context(), cycle)
	assert.Equal(
		t, 3.0, testutil.ToFloat64(h.metrics.spotTarget.WithLabelValues("workers")), "0.7 of the four above the base",
	)
}

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

// reported runs a reporter with reports over as many hours from a Monday's midnight, in virtual time, with a tick every hour,
// of which it leads those that lead says. It returns when reports were asked for, and what was said.
func reported(t *testing.T, hours int, lead func(at time.Time) bool, answer func(to time.Time) error) (asked, upTo []time.Time, said []string, h *house) {
	t.Helper()
	h = newHouse(t)
	h.reporter.options.CostReports = &CostReports{Every: week, Make: func(_ context.Context, pool string, to time.Time) (string, error) {
		asked, upTo = append(asked, time.Now().UTC()), append(upTo, to.UTC())
		return "what " + pool + " cost", answer(to)
	}}
	// The sentences are read here, and so by no webhook.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); h.reporter.runReports(ctx) }()
	for range hours {
		cycle := hold(time.Now(), plan.NothingToDo, "")
		cycle.Leading = lead(cycle.At)
		h.reporter.Report(ctx, cycle)
		synctest.Wait()
		time.Sleep(time.Hour)
		for len(h.reporter.sentences) > 0 {
			said = append(said, <-h.reporter.sentences)
		}
	}
	cancel()
	<-ended
	return asked, upTo, said, h
}

func always(time.Time) bool { return true }

// untilMonday moves the clock of a bubble to so long before the midnight at which the first Monday begins, and returns that.
func untilMonday(before time.Duration) time.Time {
	now := time.Now().UTC()
	monday := time.Date(now.Year(), now.Month(), now.Day()+(8-int(now.Weekday()))%7, 0, 0, 0, 0, time.UTC)
	for monday.Add(-before).Before(now) {
		monday = monday.AddDate(0, 0, 7)
	}
	time.Sleep(monday.Add(-before).Sub(now))
	return monday
}

func TestReportsAreMadeOnMondays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		monday := untilMonday(3 * time.Hour)
		asked, upTo, said, _ := reported(t, 24*15, always, func(time.Time) error { return nil })
		assert.Equal(t, []time.Time{monday, monday.Add(week), monday.Add(2 * week)}, upTo)
		assert.Equal(t, upTo, asked)
		assert.Equal(t, []string{"what workers cost", "what workers cost", "what workers cost"}, said)
	})
}

func TestWhoLeadsReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		monday := untilMonday(time.Hour)
		asked, _, said, _ := reported(t, 3, func(at time.Time) bool { return at.After(monday) }, func(time.Time) error { return nil })
		assert.Empty(t, asked, "another one led then, and has made it")
		assert.Empty(t, said)
	})
	synctest.Test(t, func(t *testing.T) {
		untilMonday(0)
		asked, _, _, _ := reported(t, 3, always, func(time.Time) error { return nil })
		assert.Empty(t, asked, "a process that starts then does not know whether it has been made")
	})
}

func TestReportsThatFailAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		monday := untilMonday(time.Hour)
		tries := 0
		asked, upTo, said, h := reported(t, 3, always, func(time.Time) error {
			if tries++; tries < 3 {
				return errors.New("no answer")
			}
			return nil
		})
		assert.Equal(t, []time.Time{monday, monday.Add(5 * time.Minute), monday.Add(10 * time.Minute)}, asked)
		assert.Equal(t, []time.Time{monday, monday, monday}, upTo)
		assert.Equal(t, []string{"what workers cost"}, said)
		assert.Equal(t, 2.0, testutil.ToFloat64(h.reporter.options.Metrics.failed.WithLabelValues("report")))
	})
	synctest.Test(t, func(t *testing.T) {
		untilMonday(time.Hour)
		asked, _, said, _ := reported(t, 24, always, func(time.Time) error { return errors.New("no answer") })
		assert.Len(t, asked, reportTries)
		assert.Empty(t, said)
	})
}

func TestRunMakesReportsUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.reporter.options.CostReports = &CostReports{Every: time.Hour, Make: func(ctx context.Context, _ string, _ time.Time) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.reporter.Run(ctx) }()
		for range 4 { // the first is being made, the second waits, and there is no room for a third
			h.reporter.Report(ctx, hold(time.Now(), plan.NothingToDo, ""))
			synctest.Wait()
			time.Sleep(time.Hour)
		}
		failed := h.reporter.options.Metrics.failed.WithLabelValues("report")
		assert.Equal(t, 1.0, testutil.ToFloat64(failed))
		cancel()
		require.NoError(t, <-ended)
		assert.Equal(t, 1.0, testutil.ToFloat64(failed), "an end is no failure")
	})
}

func TestNumbersOfDecisionsThatWereNotMadeAreNotTold(t *testing.T) {
	h := newHouse(t)
	count := func() int {
		n, err := testutil.GatherAndCount(h.registry, "foresail_nodepool_desired_workers", "foresail_nodepool_recommended_workers")
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
	assert.Zero(t, testutil.ToFloat64(h.reporter.options.Metrics.events.WithLabelValues("workers", string(journal.EventLaunchFailed))))
	cycle := hold(start, plan.NothingToDo, "")
	cycle.Snapshot.Pool = plan.Pool{SpotRatio: 0.7, OnDemandBase: 1}
	for range 3 {
		cycle.Snapshot.Instances = append(cycle.Snapshot.Instances, plan.Instance{Worker: true})
	}
	h.reporter.Report(t.Context(), cycle)
	assert.Equal(t, 3.0, testutil.ToFloat64(h.reporter.options.Metrics.spotTarget.WithLabelValues("workers")), "0.7 of the four above the base")
}

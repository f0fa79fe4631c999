package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
)

// The ramp is a little steeper than the paper's (section 13.1): from a few requests to what nine
// pods can take at the threshold in two minutes, on which pods take 20 s to become ready.
const (
	rampFrom, rampTo = 4.0, 150.0
	rampBegin        = 30 * time.Second / timeScale
	rampOver         = 2 * time.Minute / timeScale
	rampHold         = time.Minute / timeScale
	rampFall         = 20 * time.Second / timeScale
	rampDown         = 150 * time.Second / timeScale
)

func rampProfile() loadgen.Profile {
	top := rampBegin + rampOver
	fall := top + rampHold
	return loadgen.Profile{
		{At: 0, RPS: rampFrom}, {At: rampBegin, RPS: rampFrom}, {At: top, RPS: rampTo}, {At: fall, RPS: rampTo},
		{At: fall + rampFall, RPS: rampFrom}, {At: fall + rampDown, RPS: rampFrom},
	}
}

// TestClosedLoop plays one ramp to four applications at once: one behind each of the served
// metrics, and one whose HPA follows the present load.
func TestClosedLoop(t *testing.T) {
	t.Parallel()
	testClosedLoop(t)
}

func testClosedLoop(t *testing.T) {
	apps := []stack.App{
		newApp("loop", "total", "predicted_load_total"),
		newApp("loop", "load", "predicted_load"),
		newApp("loop", "replicas", "predicted_replicas"),
		newApp("loop", "reactive", "predicted_load_total"),
	}
	apps[3].Reactive = true
	deployAll(t, apps)
	runs := make([]stack.Run, len(apps))
	shares := &shares{t: t, client: metricsClient(t)}
	var played sync.WaitGroup
	for i, app := range apps {
		var each func(stack.Moment)
		if app.Metric == "predicted_load" {
			shares.app = app
			each = func(stack.Moment) { shares.standForTotal() }
		}
		played.Go(func() {
			run, err := shared.Play(t.Context(), app, rampProfile(), each)
			assert.NoError(t, err)
			runs[i] = run
		})
	}
	played.Wait()
	if t.Failed() {
		return
	}
	t.Log(table(runs))
	assert.Positive(t, shares.exact, "comparisons while no pod became ready")

	reactive := runs[3]
	for _, run := range runs[:3] {
		t.Run(run.App.Name, func(t *testing.T) {
			reachesWhatIsDesired(t, run)
			staysAhead(t, run, reactive)
			neverAsksForFewerWhilePodsStart(t, run)
			comesBackDown(t, run)
		})
	}
}

// shares compares predicted_load with predicted_load_total.
type shares struct {
	t      *testing.T
	client externalmetrics.ExternalMetricsClient
	app    stack.App
	ready  []int // pods that were ready at the last looks; the adapter's watch may be a look behind
	exact  int   // comparisons in which they were as many at all of these
}

// standForTotal: what an HPA makes of predicted_load, which it multiplies by the pods that are
// ready, is what it would make of predicted_load_total, in which readiness plays no part. A
// forecast may be made between two reads.
func (s *shares) standForTotal() {
	total := s.app
	total.Metric = "predicted_load_total"
	read := func(a stack.App) stack.Moment {
		value, err := stack.ReadMetric(s.client, a)
		assert.NoError(s.t, err)
		return stack.Moment{Served: value}
	}
	s.ready = append(s.ready, readyPods(s.t, s.app))
	before, share, after := read(total), read(s.app), read(total)
	s.ready = append(s.ready, readyPods(s.t, s.app))
	s.ready = s.ready[max(0, len(s.ready)-4):]
	low, high := desired(total, before), desired(total, after)
	if max(low, high)-min(low, high) > 1 {
		return
	}
	for share.Ready = slices.Min(s.ready); share.Ready <= slices.Max(s.ready); share.Ready++ {
		if n := desired(s.app, share); n == low || n == high {
			if slices.Min(s.ready) == slices.Max(s.ready) {
				s.exact++
			}
			return
		}
	}
	assert.Failf(s.t, "a share stands for another count", "%v ready, %.3f a pod, in all %.3f to %.3f", s.ready,
		share.Served, before.Served, after.Served)
}

// readyPods counts the pods of an application that are ready. The status of its Deployment follows later.
func readyPods(t *testing.T, a stack.App) int {
	pods, err := shared.Cluster.Client().CoreV1().Pods(a.Namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: a.Selector()})
	assert.NoError(t, err)
	ready := 0
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready
}

// needed is how many pods carry the top of the ramp at the threshold.
func needed(a stack.App) int { return neededAt(a, rampTo) }

// neededAt is how many pods carry a rate at the threshold.
func neededAt(a stack.App, rps float64) int {
	return int(math.Ceil(rps * a.ServiceTime.Seconds() / a.Threshold.AsApproximateFloat64()))
}

// desired is the count that a served value stands for.
func desired(a stack.App, m stack.Moment) int {
	tau := a.Threshold.AsApproximateFloat64()
	const slack = 1e-6 // values are served in thousandths
	switch a.Metric {
	case "predicted_replicas":
		return int(math.Round(m.Served))
	case "predicted_load":
		return int(math.Ceil(m.Served*float64(m.Ready)/tau - slack))
	default:
		return int(math.Ceil(m.Served/tau - slack))
	}
}

func during(run stack.Run, from, to time.Duration) []stack.Moment {
	var out []stack.Moment
	for _, m := range run.Moments {
		if from <= m.At && m.At < to {
			out = append(out, m)
		}
	}
	return out
}

// reachesWhatIsDesired: of what is served over a sync period of the HPA, it has asked for at least
// the least at the end of it, as far as its scale-up policy (five times as many, or 4 more) allows;
// and at the top there are as many as the load needs.
func reachesWhatIsDesired(t *testing.T, run stack.Run) {
	for i := range run.Moments {
		last := i + hpaSync
		if last >= len(run.Moments) || run.Moments[last].At > rampBegin+rampOver+rampHold {
			break
		}
		from := run.Moments[i].Replicas
		least := min(run.App.Max, max(5*from, from+4))
		for _, m := range run.Moments[i : last+1] {
			require.NoError(t, m.Err, "at %s", m.At)
			least = min(least, desired(run.App, m))
		}
		assert.GreaterOrEqual(t, run.Moments[last].Replicas, least, "replicas at %s", run.Moments[last].At)
	}
	for _, m := range during(run, rampBegin+rampOver+rampHold-15*time.Second/timeScale, rampBegin+rampOver+rampHold) {
		assert.GreaterOrEqual(t, m.Ready, needed(run.App), "ready pods at the top, at %s", m.At)
	}
}

// staysAhead: over the steps on the way up the replicas are asked for earlier than by the HPA that
// follows the present load (each HPA has its own moments of looking, so single steps may differ
// either way), and fewer pods are missing. For how many seconds some are, and what that does to
// requests, is in the table.
func staysAhead(t *testing.T, run, reactive stack.Run) {
	lead, steps := time.Duration(0), 0
	for n := run.App.Replicas + 1; n <= needed(run.App); n++ {
		at, ok := run.Reached(n)
		require.True(t, ok, "%d replicas", n)
		later, ok := reactive.Reached(n)
		require.True(t, ok, "%d replicas of the reactive HPA", n)
		lead += later - at
		steps++
	}
	t.Logf("replicas are asked for %s earlier on average", (lead / time.Duration(steps)).Round(time.Second))
	assert.Positive(t, lead, "lead over the reactive HPA, summed over the steps")
	assert.Less(t, run.Shortfall(), reactive.Shortfall(), "pod-seconds short of what the threshold asks for")
}

// neverAsksForFewerWhilePodsStart: the replicas do not fall during the ramp.
func neverAsksForFewerWhilePodsStart(t *testing.T, run stack.Run) {
	before, starting := 0, 0
	for _, m := range during(run, rampBegin, rampBegin+rampOver) {
		assert.GreaterOrEqual(t, m.Replicas, before, "replicas at %s", m.At)
		before = m.Replicas
		if m.Ready < m.Replicas {
			starting++
		}
	}
	assert.NotZero(t, starting, "seconds in which pods were starting")
}

func comesBackDown(t *testing.T, run stack.Run) {
	last := run.Moments[len(run.Moments)-1]
	assert.LessOrEqual(t, last.Replicas, run.App.Replicas+1, "replicas after the load has gone")
}

const tableStep = 15 * time.Second / timeScale

// table puts runs side by side.
func table(runs []stack.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-10s %9s %8s %9s %9s %8s %8s %12s %8s %6s %12s\n", "hpa on", "success", "p50", "p90", "p99",
		"failed", "dropped", "s above τ", "short", "peak", "pod-seconds")
	for _, r := range runs {
		l := r.Report.Latency
		fmt.Fprintf(&b, "%-10s %8.2f%% %8s %9s %9s %8d %8d %12d %8d %6d %12d\n", r.App.Name, 100*r.Report.Success(),
			l.P50.Round(time.Millisecond), l.P90.Round(time.Millisecond), l.P99.Round(time.Millisecond),
			r.Report.Failed+r.Report.TimedOut, r.Report.Dropped, r.SecondsAbove(), r.Shortfall(), r.Peak(), r.PodSeconds())
	}
	fmt.Fprintf(&b, "\nreplicas every %s\n", tableStep)
	for _, r := range runs {
		fmt.Fprintf(&b, "%-10s", r.App.Name)
		for at := time.Duration(0); at < rampProfile().Duration(); at += tableStep {
			if m := during(r, at, at+1500*time.Millisecond); len(m) > 0 {
				fmt.Fprintf(&b, " %3d", m[0].Replicas)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

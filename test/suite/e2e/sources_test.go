package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/stack"
)

// The ramp that each source is to see coming. Requests are fewer and longer than those of
// TestClosedLoop, so that there can be five applications at once; the load of a pod is the same.
const (
	sourcesFrom, sourcesTo = 3.0, 75.0
	sourcesServiceTime     = 80 * time.Millisecond
	sourcesBegin           = 20 * time.Second / timeScale
	sourcesTop             = sourcesBegin + 100*time.Second/timeScale
	sourcesSettled         = sourcesTop + 2*hpaSync*time.Second
	sourcesEnd             = sourcesSettled + 12*time.Second

	// ageGoal is how old the newest sample behind a served value should be at the most, at the 99th
	// percentile, for sources that see every second. The table shows it; a busy machine must not
	// fail the test.
	ageGoal = 2.0
)

func sourcesProfile() loadgen.Profile {
	return loadgen.Profile{
		{At: 0, RPS: sourcesFrom}, {At: sourcesBegin, RPS: sourcesFrom}, {At: sourcesTop,
			RPS: sourcesTo}, {At: sourcesEnd, RPS: sourcesTo},
	}
}

// neededFrom returns when the ramp needs so many pods to stay below the threshold.
func neededFrom(a stack.App, pods int) time.Duration {
	rate := float64(pods-1) * a.Threshold.AsApproximateFloat64() / a.ServiceTime.Seconds()
	share := (rate - sourcesFrom) / (sourcesTo - sourcesFrom)
	return sourcesBegin + time.Duration(share*float64(sourcesTop-sourcesBegin))
}

// sourceCase is an application with a source, and what is known of its samples beforehand.
type sourceCase struct {
	app     stack.App
	what    string // for the table
	apart   [2]time.Duration
	coarse  *bool // nil: the samples are as fine as the moments at which they are taken happen to make them
	prompt  bool  // every second is seen, and at once
	follows bool  // fine enough for the HPA to have what is needed soon after the ramp
}

// TestSources plays one ramp to five applications at once, whose samples come in the four ways
// there are. Beside the server that scrapes once a second is one that does so every five seconds
// and is asked every five, as is common. At real length it also measures how old samples are.
func TestSources(t *testing.T) {
	t.Parallel()
	testSources(t)
}

func testSources(t *testing.T) {
	cases, server := sourceCases(t)
	apps := make([]stack.App, len(cases))
	for i, c := range cases {
		apps[i] = c.app
	}
	place(t, apps...)
	usageComes(t, apps[len(apps)-1])
	for _, a := range apps {
		waitForForecastWithin(t, a, 3*time.Minute)
	}

	runs := make([]stack.Run, len(apps))
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	var watched, played sync.WaitGroup
	var ages map[string][]float64
	watched.Go(func() {
		var err error
		ages, err = watchAges(watching, apps[0].Namespace)
		assert.NoError(t, err)
	})
	for i, a := range apps {
		played.Go(func() {
			// Requests make latencies. What pods report is exactly their part of the load: of a
			// second in five, or in fifteen, requests show a load that is a tenth too small now and
			// then, and with it the HPA takes a pod too few.
			begun, profile := time.Now(), sourcesProfile()
			shared.Shares.Set(a.Namespace, a.Name,
				func() float64 { return profile.Rate(time.Since(begun)) * a.ServiceTime.Seconds() })
			defer shared.Shares.Set(a.Namespace, a.Name, nil)
			run, err := shared.Play(t.Context(), a, profile, nil)
			assert.NoError(t, err)
			runs[i] = run
		})
	}
	played.Wait()
	stop()
	watched.Wait()
	if t.Failed() {
		return
	}
	t.Run("dashboard", func(t *testing.T) { dashboardHasData(t, server) })
	t.Log(sourcesTable(t, cases, runs, ages))
	for i, c := range cases {
		t.Run(c.app.Name, func(t *testing.T) {
			c.statusIsRight(t)
			if c.follows {
				c.hasWhatIsNeeded(t, runs[i])
			}
		})
	}
}

// sourceCases also returns the server that scrapes Foresail as well.
func sourceCases(t *testing.T) ([]sourceCase, *monitoring.Prometheus) {
	source := func(name string) stack.App {
		a := newApp("sources", name, "predicted_load_total")
		a.ServiceTime = sourcesServiceTime
		return a
	}
	yes, no := true, false
	fine, eachSecond := &no, [2]time.Duration{500 * time.Millisecond, 2 * time.Second}

	endpoints, each, fifth, sent, usage := source("pods"), source("prometheus"), source("prometheus-5s"), source("remote-write"), source("resource")
	server := startPrometheus(t, monitoring.PrometheusOptions{Name: "prometheus-1s", Selector: each.Selector(),
		Targets: []string{adapter.Address}})
	each.Source = scraped(server, each, time.Second)
	slower := startPrometheus(t, monitoring.PrometheusOptions{Name: "prometheus-5s", Selector: fifth.Selector(),
		ScrapeInterval: 5 * time.Second})
	fifth.Source = scraped(slower, fifth, 0)
	startPrometheus(t, pushed.agent("agent-sources", sent, &pushed.user))
	sent.Source = written()
	usage.Source = v1alpha1.Source{Resource: &v1alpha1.ResourceSource{Name: v1alpha1.ResourceCPU}}
	return []sourceCase{
		{app: endpoints, what: "pods, 1 s", apart: eachSecond, coarse: fine, prompt: true, follows: true},
		{app: each, what: "prometheus, scrapes 1 s, asked 1 s", apart: eachSecond, coarse: fine, follows: true},
		{app: fifth, what: "prometheus, scrapes 5 s, asked 5 s",
			apart: [2]time.Duration{3 * time.Second, 8 * time.Second}, follows: true},
		{app: sent, what: "remoteWrite, agent scrapes 1 s, v2", apart: eachSecond, coarse: fine, prompt: true,
			follows: true},
		{app: usage, what: "resource cpu, metrics-server 15 s",
			apart: [2]time.Duration{8 * time.Second, 25 * time.Second}, coarse: &yes},
	}, server
}

// usageComes waits for an application's status to say that nothing serves metrics.k8s.io, and has it served.
func usageComes(t *testing.T, a stack.App) {
	t.Helper()
	eventually(t, 30*time.Second, "the condition reports that metrics.k8s.io is missing", func(c *assert.CollectT) {
		fresh := conditionOf(statusOf(c, a), v1alpha1.ConditionSamplesFresh)
		assert.Equal(c, metav1.ConditionFalse, fresh.Status)
		assert.Contains(c, fresh.Message, "metrics.k8s.io is not served")
	})
	ctx, cancel := context.WithCancel(suite)
	server, err := monitoring.StartMetricsServer(ctx, shared.Cluster,
		monitoring.MetricsServerOptions{Progress: os.Stderr, Selector: a.Selector()})
	if err != nil {
		cancel()
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last words of metrics-server:\n%s", server.LogTail())
		}
		assert.NoError(t, server.Stop())
		cancel()
		// An API that is registered and not served would be in the way of others that discover.
		services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
		assert.NoError(t, shared.Cluster.Dynamic().Resource(services).Delete(suite, "v1beta1.metrics.k8s.io",
			metav1.DeleteOptions{}))
	})
}

// statusIsRight: the status describes the samples as they were set up.
func (c *sourceCase) statusIsRight(t *testing.T) {
	status := statusOf(t, c.app)
	assert.Equal(t, c.app.Source.Name(), sourceName(status))
	if assert.NotNil(t, status.SampleInterval, "status.sampleInterval") {
		assert.GreaterOrEqual(t, status.SampleInterval.Duration, c.apart[0])
		assert.LessOrEqual(t, status.SampleInterval.Duration, c.apart[1])
	}
	found := conditionOf(status, v1alpha1.ConditionSamplesSufficient)
	switch {
	case c.coarse == nil:
	case *c.coarse:
		assert.Equal(t, metav1.ConditionFalse, found.Status, found.Message)
		assert.Equal(t, "SamplesTooSparse", found.Reason)
	default:
		assert.Equal(t, metav1.ConditionTrue, found.Status, found.Message)
	}
}

// sourceName is status.source as the zero value of an App's Source has it.
func sourceName(status v1alpha1.PredictedMetricStatus) string {
	if status.Source == "pods" {
		return ""
	}
	return status.Source
}

// hasWhatIsNeeded: two syncs of the HPA after the ramp there are as many replicas as its end needs,
// and on the way there always was a value. Where samples may be too sparse, as the status then
// says, what is served may be those of seconds ago, a little less than the end of the ramp, and an
// HPA that has come to stand there keeps what its tolerance of a tenth allows.
func (c *sourceCase) hasWhatIsNeeded(t *testing.T, run stack.Run) {
	for _, m := range run.Moments {
		assert.NoError(t, m.Err, "at %s", m.At)
	}
	rate := sourcesTo
	if c.coarse == nil {
		rate /= 1.1
	}
	settled := during(run, sourcesSettled, sourcesEnd)
	require.NotEmpty(t, settled, "nothing was recorded from %s to %s: the machine stood still", sourcesSettled,
		sourcesEnd)
	for _, m := range settled {
		assert.GreaterOrEqual(t, m.Replicas, neededAt(run.App, rate), "replicas at %s, when %.2f is served", m.At,
			m.Served)
	}
	if t.Failed() {
		for _, m := range run.Moments {
			t.Logf("%3.0f s: load %.2f, served %.2f, replicas %d, ready %d", m.At.Seconds(),
				m.Rate*run.App.ServiceTime.Seconds(), m.Served, m.Replicas, m.Ready)
		}
	}
}

// sourcesTable puts the sources side by side.
func sourcesTable(t *testing.T, cases []sourceCase, runs []stack.Run, ages map[string][]float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-36s %8s %8s %9s %8s %8s %8s %9s %6s %9s %5s %12s %8s  %s\n", "source", "age p50", "age p99",
		"success", "p50", "p90", "p99",
		"s above τ", "short", "lead", "peak", "pod-seconds", "no value", "SamplesSufficient")
	for i, c := range cases {
		run, l := runs[i], runs[i].Report.Latency
		aged := ages[c.app.Name]
		require.NotEmpty(t, aged, c.app.Name)
		fine := conditionOf(statusOf(t, c.app), v1alpha1.ConditionSamplesSufficient)
		fmt.Fprintf(&b, "%-36s %7.2fs %7.2fs %8.2f%% %8s %8s %8s %9d %6d %9s %5d %12d %8d  %s %s: %s\n", c.what,
			quantile(aged, 0.5), quantile(aged, 0.99), 100*run.Report.Success(),
			l.P50.Round(time.Millisecond), l.P90.Round(time.Millisecond), l.P99.Round(time.Millisecond),
			run.SecondsAbove(), run.Shortfall(), lead(run), run.Peak(), run.PodSeconds(),
			len(run.Moments)-len(served(run.Moments)),
			fine.Status, fine.Reason, fine.Message)
	}
	b.WriteString("age: of the newest sample behind what is served, foresail_sample_age_seconds five times a second during the ramp\n" +
		"lead: of asking for replicas over needing them, mean of the steps; a pod takes " + readyDelay.String() + " to become ready\n")
	for _, c := range cases {
		if c.prompt {
			p99 := quantile(ages[c.app.Name], 0.99)
			fmt.Fprintf(&b, "goal: age at most %.0f s at the 99th percentile for %s: %t (%.2f s of %d)\n", ageGoal,
				c.app.Name, p99 <= ageGoal, p99, len(ages[c.app.Name]))
		}
	}
	b.WriteString("replicas every 10 s\n")
	for i, c := range cases {
		fmt.Fprintf(&b, "%-16s", c.app.Name)
		for at := time.Duration(0); at < sourcesEnd; at += 10 * time.Second {
			if m := during(runs[i], at, at+1500*time.Millisecond); len(m) > 0 {
				fmt.Fprintf(&b, " %3d", m[0].Replicas)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// lead returns how long before it was needed each further replica was asked for, on average.
func lead(run stack.Run) string {
	sum, reached, steps := time.Duration(0), 0, 0
	for n := run.App.Replicas + 1; n <= neededAt(run.App, sourcesTo); n++ {
		steps++
		if at, ok := run.Reached(n); ok {
			sum += neededFrom(run.App, n) - at
			reached++
		}
	}
	if reached < steps {
		return fmt.Sprintf("%d of %d", reached, steps)
	}
	return (sum / time.Duration(steps)).Round(100 * time.Millisecond).String()
}

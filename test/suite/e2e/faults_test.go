package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/stack"
)

const faultsRPS = 27.5

// newSteadyApp returns an application for a constant load of faultsRPS, which its five pods can take.
func newSteadyApp(name string) stack.App {
	a := newApp(name, name, "predicted_load_total")
	a.ServiceTime, a.Replicas, a.Min = 80*time.Millisecond, 5, 5
	a.ScaleDownWindow = 600 // so that what moves the replicas is a forecast that is too high
	return a
}

// TestPrometheusDies has a real server die and come back under a known load, and adapters begin
// while it runs, while it is down and after the gap: what is served is about that load or an error,
// and the target is not scaled.
func TestPrometheusDies(t *testing.T) {
	t.Parallel()
	app := newSteadyApp("dies")
	app.StaleAfter = 8 * time.Second
	server := startPrometheus(t, monitoring.PrometheusOptions{Name: "prometheus-dies", Selector: app.Selector()})
	app.Source = scraped(server, app, time.Second)
	deploy(t, app)
	own := addEndpoints(t, app)
	s := beginSteady(t, app, faultsRPS)
	s.settle(t)

	t.Run("an adapter begins", func(t *testing.T) {
		got := begin(t, "begins", servedOften, app, own)
		got[app.Name].isAbout(t, s.load)
		got[own.Name].isAbout(t, s.load)
		assert.Less(t, got[app.Name].first, got[own.Name].first,
			"a window that is asked for is there before one that is waited for")
	})
	t.Run("killed", func(t *testing.T) {
		s.outlasts(t, fault{begin: server.Kill, end: server.Restart, message: "refused", during: func() {
			got := begin(t, "begins-blind", answeredOften, app)
			assert.Empty(t, got[app.Name].values, "an adapter that never had an answer serves nothing")
			assert.True(t, apierrors.IsServiceUnavailable(got[app.Name].last), "%v", got[app.Name].last)
		}})
	})
	t.Run("an adapter begins after the gap", func(t *testing.T) {
		begin(t, "begins-after-gap", servedOften, app)[app.Name].isAbout(t, s.load)
	})
}

// TestPrometheusFreezes has a real server stop answering for a while, and then replaces the pods
// that it scrapes.
func TestPrometheusFreezes(t *testing.T) {
	t.Parallel()
	app := newSteadyApp("freezes")
	app.StaleAfter = 8 * time.Second
	server := startPrometheus(t, monitoring.PrometheusOptions{Name: "prometheus-freezes", Selector: app.Selector()})
	app.Source = scraped(server, app, time.Second)
	deploy(t, app)
	own := addEndpoints(t, app)
	s := beginSteady(t, app, faultsRPS)
	s.settle(t)

	t.Run("frozen", func(t *testing.T) {
		s.outlasts(t, fault{begin: server.Pause, end: server.Continue, message: "no complete answer within"})
	})
	t.Run("an adapter begins after a rolling update", func(t *testing.T) {
		from := time.Now()
		replacePods(t, app)
		got := begin(t, "begins-after-update", servedOften, app, own)
		got[app.Name].isAbout(t, s.load)
		got[own.Name].isAbout(t, s.load)
		s.keptReplicas(t, from)
	})
}

// addEndpoints makes a further PredictedMetric of an application, which reads the pods themselves.
func addEndpoints(t *testing.T, a stack.App) stack.App {
	t.Helper()
	return addMetric(t, a, "endpoints", func(spec map[string]any) {
		spec["source"] = map[string]any{"pods": map[string]any{"port": "metrics", "metric": stack.Utilization}}
	})
}

// fault is one of a source.
type fault struct {
	begin, end func() error
	during     func() // before its end; nil: nothing
	message    string // part of that of the condition
}

// outlasts: a fault that lasts for longer than staleAfter makes the metric an error, which the HPA
// takes for no reason to scale; after it there is a forecast again, and never a wrong one.
func (s *steady) outlasts(t *testing.T, f fault) {
	from := time.Now()
	require.NoError(t, f.begin())
	failed := s.next(t, from, s.app.StaleAfter+30*time.Second, "an error instead of a value",
		func(x sighting) bool { return x.Err != nil })
	assert.True(t, apierrors.IsServiceUnavailable(failed.Err), "%v", failed.Err)
	eventually(t, 45*time.Second, "conditions report why", func(c *assert.CollectT) {
		status := statusOf(c, s.app)
		ready, fresh := conditionOf(status, v1alpha1.ConditionReady), conditionOf(status,
			v1alpha1.ConditionSamplesFresh)
		assert.Equal(c, metav1.ConditionFalse, ready.Status)
		assert.Equal(c, "Stale", ready.Reason)
		assert.Equal(c, metav1.ConditionFalse, fresh.Status)
		assert.Contains(c, fresh.Message, f.message)
	})
	eventually(t, 45*time.Second, "the HPA has met the error", func(c *assert.CollectT) {
		assert.Equal(c, corev1.ConditionFalse, scalingActive(c, s.app))
	})
	if f.during != nil {
		f.during()
	}
	for _, x := range s.since(failed.when) {
		assert.Error(t, x.Err, "a value of %.2f was served while nothing could be known", x.Served)
	}
	ended := time.Now()
	require.NoError(t, f.end())
	again := s.next(t, ended, 90*time.Second, "a value again", func(x sighting) bool { return x.Err == nil })
	t.Logf("error %s after the beginning, value %s after the end", failed.when.Sub(from).Round(time.Second),
		again.when.Sub(ended).Round(time.Second))
	s.settle(t)
	s.servesTheLoad(t, "before, during and after", from)
	s.keptReplicas(t, from)
}

// scalingActive is whether the HPA of an application knows what it would scale by.
func scalingActive(c require.TestingT, a stack.App) corev1.ConditionStatus {
	hpa, err := shared.Cluster.Client().AutoscalingV2().HorizontalPodAutoscalers(a.Namespace).Get(suite, a.Name,
		metav1.GetOptions{})
	require.NoError(c, err)
	for _, condition := range hpa.Status.Conditions {
		if condition.Type == autoscalingv2.ScalingActive {
			return condition.Status
		}
	}
	return corev1.ConditionUnknown
}

// replacePods updates an application and waits until all of its pods are new and ready.
func replacePods(t *testing.T, a stack.App) {
	t.Helper()
	deployments := shared.Cluster.Client().AppsV1().Deployments(a.Namespace)
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restarted-at":%q}}}}}`, time.Now())
	patched, err := deployments.Patch(t.Context(), a.Name, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{})
	require.NoError(t, err)
	eventually(t, 3*time.Minute, "the update is complete", func(c *assert.CollectT) {
		d, err := deployments.Get(t.Context(), a.Name, metav1.GetOptions{})
		require.NoError(c, err)
		require.GreaterOrEqual(c, d.Status.ObservedGeneration, patched.Generation)
		assert.Equal(c, *d.Spec.Replicas, d.Status.UpdatedReplicas)
		assert.Equal(c, *d.Spec.Replicas, d.Status.Replicas)
		assert.Equal(c, *d.Spec.Replicas, d.Status.ReadyReplicas)
	})
}

// beginning is what an adapter served after its start.
type beginning struct {
	metric stack.App
	first  time.Duration // from its start to the first value; 0: there was none
	values []float64
	last   error
	// unavailable counts the answers that there is no value.
	unavailable int
}

func (b *beginning) isAbout(t *testing.T, load float64) {
	t.Helper()
	if assert.NotEmpty(t, b.values, "no value of %s: %v", b.metric.Name, b.last) {
		aboutTheLoad(t, fmt.Sprintf("%s, first value %s after the start", b.metric.Name,
			b.first.Round(100*time.Millisecond)), load, b.values)
	}
}

// begin runs a further adapter, one for the namespace of some metrics alone, and reads them all
// from it until enough has been seen of each. The one that is registered goes on.
func begin(t *testing.T, name string, enough func(*beginning) bool, metrics ...stack.App) map[string]*beginning {
	t.Helper()
	from := time.Now()
	a, err := runAdapter(suite, name, "--namespaces="+metrics[0].Namespace)
	require.NoError(t, err)
	defer func() { assert.NoError(t, a.Stop()) }()
	client := direct(t, a)
	got := map[string]*beginning{}
	for _, m := range metrics {
		got[m.Name] = &beginning{metric: m}
	}
	if !assert.Eventually(t, func() bool {
		done := true
		for _, b := range got {
			b.read(client, from)
			done = done && enough(b)
		}
		return done
	}, 90*time.Second, 200*time.Millisecond, "%s has answered often enough", name) {
		t.Logf("the last lines of %s:\n%s", name, a.LogTail())
	}
	return got
}

func (b *beginning) read(client externalmetrics.ExternalMetricsClient, from time.Time) {
	value, err := stack.ReadMetric(client, b.metric)
	b.last = err
	switch {
	case err == nil && b.values == nil:
		b.first = time.Since(from)
		fallthrough
	case err == nil:
		b.values = append(b.values, value)
	case apierrors.IsServiceUnavailable(err):
		b.unavailable++
	}
}

// servedOften: five seconds of values, or more.
func servedOften(b *beginning) bool { return len(b.values) >= 25 }

// answeredOften: ten seconds of answers, or more.
func answeredOften(b *beginning) bool { return len(b.values)+b.unavailable >= 50 }

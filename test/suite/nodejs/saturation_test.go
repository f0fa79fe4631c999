package nodejs

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
)

const (
	readyDelay  = 10 * time.Second // of pods: long enough to see the loops saturated
	timeScale   = 3                // the HPA syncs each 5 s
	minPods     = 2
	maxPods     = 4
	threshold   = 0.7 // of the example
	saturated   = 0.97
	requestRate = 210.0 // a second, of 10 ms each: more than two loops have, and less than the threshold of four
	requestPath = "/work?ms=10"
	// so that a loop is no further behind than a fraction of a second, as with a server that sheds
	// load
	inFlight     = 40
	longestLoad  = 100 * time.Second
	settledFor   = 6 // seconds below the threshold that end the load
	settledAfter = 60 * time.Second
)

// rig is a Foresail with an example on it.
type rig struct {
	stack   *stack.Stack
	adapter *stack.Adapter
	app     stack.App
}

// TestEventLoopsThatSaturate sends two Node.js processes more requests than their event loops have time for.
func TestEventLoopsThatSaturate(t *testing.T) {
	server := serverJS(t)
	r := newRig(t, "nodejs")
	r.deploy(t, server)
	r.waitForForecasts(t)
	heapIsPlausible(t, r)

	moments := r.saturate(t)
	for _, m := range moments {
		t.Log(m)
	}
	forecastAsksForMoreAtTheBound(t, moments)
	newProcessesTakeLoad(t, moments)
	r.comesBackDown(t)
}

// newRig starts a control plane with a Foresail that ends with the test, for an example.
func newRig(t *testing.T, example string) *rig {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // the test's own ends before what is cleaned up
	s, err := stack.Start(ctx, stack.Options{Progress: os.Stderr, ReadyDelay: readyDelay, Seed: 1,
		TimeScale: timeScale})
	if err != nil {
		cancel()
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		cancel()
	})
	starting, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	a, err := s.StartAdapter(ctx, "adapter")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Stop()) })
	require.NoError(t, a.WaitReady(starting))
	require.NoError(t, s.Register(starting, a))
	return &rig{stack: s, adapter: a, app: stack.App{
		Namespace: example, Name: example, Metric: "predicted_load_total", Replicas: minPods, Min: minPods,
		Max: maxPods,
	}}
}

// deploy applies the example. What differs from its files is what a small machine demands: how many pods there may be.
func (r *rig) deploy(t *testing.T, server program) {
	t.Helper()
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": r.app.Namespace}}
	objects := []*unstructured.Unstructured{{Object: namespace}}
	for _, file := range []string{"deployment.yaml", "predictedmetric.yaml", "hpa.yaml"} {
		for _, object := range example(t, r.app.Name, file) {
			object.SetNamespace(r.app.Namespace)
			switch object.GetKind() {
			case "Deployment":
				set(t, object, int64(minPods), "spec", "replicas")
				// Watt's takes 5 of them to sleep
				set(t, object, int64(6), "spec", "template", "spec", "terminationGracePeriodSeconds")
			case "PredictedMetric", "HorizontalPodAutoscaler":
				set(t, object, int64(minPods), "spec", "minReplicas")
				set(t, object, int64(maxPods), "spec", "maxReplicas")
			}
			objects = append(objects, object)
		}
	}
	runProcesses(t, r.stack.Cluster.Client(), r.app.Namespace, r.app.Selector(), server)
	for _, object := range objects {
		manifest, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		_, err = r.stack.Cluster.Apply(t.Context(), manifest)
		require.NoError(t, err)
	}
}

func set(t *testing.T, object *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	require.NoError(t, unstructured.SetNestedField(object.Object, value, path...))
}

func (r *rig) read(t *testing.T, name string) (float64, error) {
	t.Helper()
	client, err := externalmetrics.NewForConfig(r.stack.Cluster.RESTConfig())
	require.NoError(t, err)
	app := r.app
	app.Name = name
	return stack.ReadMetric(client, app)
}

// waitForForecasts waits until the API server serves both metrics of the pods that there are at first.
func (r *rig) waitForForecasts(t *testing.T) {
	t.Helper()
	for _, name := range []string{r.app.Name + "-elu", r.app.Name + "-heap"} {
		var last error
		require.Eventually(t, func() bool {
			_, last = r.read(t, name)
			return last == nil
		}, 90*time.Second, 500*time.Millisecond, "no forecast of %s", name)
		require.NoError(t, last)
	}
}

// heapIsPlausible: the heaps are those of small Node.js processes, in bytes, and ask for no further pod.
func heapIsPlausible(t *testing.T, r *rig) {
	t.Helper()
	m := r.look(t, 0, nil)
	assert.Greater(t, m.heap["load_per_instance"], 2e6)
	assert.Less(t, m.heap["load_per_instance"], 40e6)
	assert.EqualValues(t, minPods, m.heap["desired_replicas"])
	total, err := r.read(t, "nodejs-heap")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, total, 0.0)
	assert.Less(t, total, 48*math.Pow(2, 20), "as the HPA reads it: not one pod at the threshold")
}

// saturate sends requests and looks at everything once a second, until enough pods have been ready
// for a while.
func (r *rig) saturate(t *testing.T) []moment {
	t.Helper()
	pods, err := loadgen.NewReadyPods(r.stack.Cluster.Client(), r.app.Namespace, r.app.Selector(), 0)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, pods.Start(ctx))
	require.Len(t, pods.Endpoints(), minPods)
	generator, err := loadgen.New(loadgen.Config{
		Profile: loadgen.Constant(requestRate, longestLoad), Endpoints: pods, Path: requestPath, MaxInFlight: inFlight,
	})
	require.NoError(t, err)
	sent := make(chan loadgen.Report, 1)
	begun := time.Now()
	go func() {
		report, _ := generator.Run(ctx) // ends early when enough has been seen
		sent <- report
	}()

	var moments []moment
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for settled := 0; settled < settledFor; {
		select {
		case report := <-sent:
			t.Logf("the load has ended: %+v", report)
			return moments
		case <-ticker.C:
		}
		m := r.look(t, time.Since(begun), pods.Endpoints())
		moments = append(moments, m)
		if settled++; m.Ready < maxPods || len(m.servers) < maxPods || busiest(m) >= threshold {
			settled = 0
		}
	}
	cancel()
	report := <-sent
	t.Logf("%d requests served, %d dropped beyond %d in flight, %d failed; p50 %s", report.OK, report.Dropped, inFlight,
		report.Failed, report.Latency.P50)
	assert.Zero(t, report.Failed)
	return moments
}

func busiest(m moment) float64 {
	most := 0.0
	for _, s := range m.servers {
		most = max(most, s.utilization)
	}
	return most
}

// forecastAsksForMoreAtTheBound: while both loops are full, every process is read each second, the
// load is taken for more than they show, by half as much again at most, and more pods are asked
// for. By how much depends on whether a loop was read while it filled: the forecast knows nothing
// of a rise between two readings. That is asserted of most of the later moments: a reading that
// comes late, as the processes of new pods take the cores, looks like a loop that was not full for
// a moment.
func forecastAsksForMoreAtTheBound(t *testing.T, moments []moment) {
	t.Helper()
	var full []moment
	for _, m := range moments {
		if m.Ready != minPods || m.leastUtilization() < saturated {
			continue
		}
		full = append(full, m)
		assert.Less(t, m.elu["load_per_instance"], 1.5*1.05, "at %s", m.at)
	}
	require.Greater(t, len(full), 5, "seconds in which both loops were full")
	var forecasts []float64
	for _, m := range full[len(full)/2:] {
		forecasts = append(forecasts, m.elu["predicted_load_per_instance"]*float64(m.Replicas))
	}
	slices.Sort(forecasts)
	forecast, last := forecasts[len(forecasts)/2], full[len(full)-1]
	assert.Greater(t, forecast, 1.1*minPods, "of all pods, of %v", forecasts)
	assert.Less(t, forecast, 1.5*1.05*minPods, "of all pods, of %v", forecasts)
	assert.Greater(t, last.elu["load_per_instance"], 0.9, "at %s", last.at)
	assert.Greater(t, last.elu["desired_replicas"], float64(minPods), "at %s", last.at)
	assert.Greater(t, last.elu["samples_per_second"], 0.8*minPods, "each pod is read each second, at %s", last.at)
}

// newProcessesTakeLoad: the HPA has asked for as many pods as the load needs, and all of them
// answer requests.
func newProcessesTakeLoad(t *testing.T, moments []moment) {
	t.Helper()
	require.NotEmpty(t, moments)
	last := moments[len(moments)-1]
	require.Equal(t, maxPods, last.Ready)
	require.Len(t, last.servers, maxPods)
	for address, s := range last.servers {
		assert.Less(t, s.utilization, threshold, address)
		assert.Greater(t, s.utilization, 0.3, address)
		assert.Greater(t, s.requests, 100.0, address)
	}
	assert.Greater(t, last.elu["samples_per_second"], 0.8*maxPods-1, "each pod is read each second")
}

// comesBackDown: once there is no load, both the decision and what the HPA reads fall to the least.
func (r *rig) comesBackDown(t *testing.T) {
	t.Helper()
	var last string
	require.Eventually(t, func() bool {
		m := r.look(t, 0, nil)
		total, err := r.read(t, "nodejs-elu")
		last = fmt.Sprintf("%v; the HPA reads %.2f (%v)", m, total, err)
		return err == nil && m.elu["desired_replicas"] <= minPods && math.Ceil(total/threshold) <= minPods
	}, settledAfter, time.Second, "the desired count does not fall")
	t.Log(last)
}

//go:build long

package karpenter_test

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/test/bench/karpenter"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
)

var (
	// only leaves all variants of the ramp out but one, so that none has Karpenter look at the
	// buffers of another.
	only = flag.String("variant", "", "run only this variant of the ramp, such as static")
	slow = flag.Int("slow", 1, "how many times as long the ramp takes")
)

// The load of the ramp: as much as 4 pods carry at the threshold, up to 16 and back again. A pod
// less half, so that no rounding decides.
const (
	fewest, highest = 4, 16
	threshold       = "700m"
	serviceTime     = 20 * time.Millisecond

	flatFor  = 60 * time.Second / timeScale
	quickest = 3 * time.Minute / timeScale // that the ramp takes
	holdFor  = 2 * time.Minute / timeScale
	tailFor  = 5 * time.Minute / timeScale

	// staticBuffer is as many pods as the ramp adds in the time of a node's start and a pod's, and
	// in a period of the HPA.
	staticBuffer = int((nodeStart+podStart+15*time.Second/timeScale)*(highest-fewest)/quickest) + 1
)

func profile() loadgen.Profile {
	of := func(pods float64) float64 {
		tau := resource.MustParse(threshold)
		return (pods - 0.5) * tau.AsApproximateFloat64() / serviceTime.Seconds()
	}
	at, rampFor := time.Duration(0), rampTime()
	after := func(d time.Duration) time.Duration { at += d; return at }
	return loadgen.Profile{
		{At: 0, RPS: of(fewest)}, {At: after(flatFor), RPS: of(fewest)},
		{At: after(rampFor), RPS: of(highest)}, {At: after(holdFor), RPS: of(highest)},
		{At: after(rampFor), RPS: of(fewest)}, {At: after(tailFor), RPS: of(fewest)},
	}
}

func rampTime() time.Duration { return time.Duration(*slow) * quickest }

// variant is a way to have nodes for pods. All of them have the same HPA, on the same forecast.
type variant struct {
	name    string
	label   string      // of its nodes, with the name of their pool
	pool    func(*ramp) // that the nodes are of
	buffer  func(*ramp) // nil for none
	settled func(*ramp) // waits until all is there that the variant has before the ramp; nil if pods that run are all
}

var variants = []variant{
	{name: "none", label: karpenter.PoolLabel, pool: (*ramp).nodePool},
	{
		name: "static", label: karpenter.PoolLabel, pool: (*ramp).nodePool,
		buffer: (*ramp).bufferStatically, settled: (*ramp).buffered,
	},
	{
		name: "forecast", label: karpenter.PoolLabel, pool: (*ramp).nodePool,
		buffer: (*ramp).bufferByForecast,
	},
	{name: "workerpool", label: workerPoolLabel, pool: (*ramp).workerPool},
}

const workerPoolLabel = "test.foresail.dev/pool"

// ramp is one variant while it runs.
type ramp struct {
	testing.TB
	variant
	app    stack.App
	ledger *ledger
	run    stack.Run

	figures figures
	buffers []int  // what the CapacityBuffer asked for, at each moment
	why     string // what Foresail last reported of its buffer
}

// BenchmarkRamp has the variants run the same ramp at once, each with pods and nodes of its own.
// Figures are printed, not asserted.
func BenchmarkRamp(b *testing.B) {
	adapter, err := shared.stack.StartAdapter(b.Context(), "foresail")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, adapter.Stop()) })
	require.NoError(b, shared.stack.Register(b.Context(), adapter))

	var ramps []*ramp
	for _, v := range variants {
		if *only != "" && *only != v.name {
			continue
		}
		ramps = append(ramps, newRamp(b, v))
	}
	require.NotEmpty(b, ramps, "-variant")
	var group errgroup.Group
	for _, r := range ramps {
		group.Go(r.deploy)
	}
	require.NoError(b, group.Wait())
	for _, r := range ramps {
		if r.buffer != nil {
			r.buffer(r)
		}
	}
	for _, r := range ramps {
		r.settle()
	}
	b.Logf("%d to %d pods' worth in %s and back, %s held: %s", fewest, highest, rampTime(), holdFor,
		profile().Duration())
	play(b, ramps)
	for _, r := range ramps {
		b.Run(r.name, r.report)
	}
}

func newRamp(t testing.TB, v variant) *ramp {
	t.Helper()
	name := "ramp-" + v.name
	r := &ramp{TB: t, variant: v, app: stack.App{
		Namespace: name, Name: "app", Metric: "predicted_load_total", Replicas: fewest, Min: fewest,
		Max:         highest + fewest,
		ServiceTime: serviceTime, Threshold: resource.MustParse(threshold),
		CPU: "1", NodeSelector: map[string]string{v.label: name},
	}}
	r.run.App = r.app
	r.ledger = newLedger(t, name)
	r.pool(r)
	return r
}

// deploy has the application run, under the load that the ramp begins with.
func (r *ramp) deploy() error {
	ctx, cancel := context.WithTimeoutCause(r.Context(), nodeStart+2*time.Minute, errors.New("not in time"))
	defer cancel()
	load := profile().Rate(0) * serviceTime.Seconds()
	shared.stack.Shares.Set(r.app.Namespace, r.app.Name, func() float64 { return load })
	return shared.stack.Deploy(ctx, r.app)
}

// settle waits until the HPA scales by a forecast of that load, and everything is there that the
// variant has before the ramp.
func (r *ramp) settle() {
	metrics := shared.stack.Cluster.Dynamic().Resource(predictedMetrics).Namespace(r.app.Namespace)
	eventually(r.TB, time.Minute, "a forecast, and as many pods as before", func(c *assert.CollectT) {
		object, err := metrics.Get(r.Context(), r.app.Name, metav1.GetOptions{})
		require.NoError(c, err)
		conditions, err := conditionsOf(object)
		require.NoError(c, err)
		assert.True(c, meta.IsStatusConditionTrue(conditions, "SamplesSufficient"))
		state, err := shared.stack.Look(r.Context(), r.app)
		require.NoError(c, err)
		assert.Equal(c, stack.State{Replicas: fewest, Ready: fewest, Desired: fewest}, state)
	})
	if r.settled != nil {
		r.settled(r)
	}
}

func conditionsOf(object *unstructured.Unstructured) ([]metav1.Condition, error) {
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	fields, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil {
		return nil, err
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status)
	return status.Conditions, err
}

// nodePool has Karpenter start nodes.
func (r *ramp) nodePool() {
	newPool(r.TB, r.app.Namespace)
	r.ledger.watchNodeClaims(r.TB, r.app.Namespace)
}

//go:embed workerpool.yaml
var workerPoolYAML string

var workerPoolTemplate = template.Must(template.New("workerpool.yaml").Parse(workerPoolYAML))

// workerPool has Foresail start nodes, of its simulated cloud.
func (r *ramp) workerPool() {
	cluster := shared.stack.Cluster
	var manifest bytes.Buffer
	require.NoError(r, workerPoolTemplate.Execute(&manifest, map[string]any{
		"Name": r.app.Namespace, "Label": r.label, "PodsPerNode": podsPerNode, "NodeStart": nodeStart,
		"Idle": consolidateAfter,
	}))
	_, err := cluster.Apply(r.Context(), manifest.Bytes())
	require.NoError(r, err)
	binary, err := foresail.Build(r.Context(), r.Output())
	require.NoError(r, err)
	process, err := foresail.Start(foresail.Options{
		Name: "foresail-nodepool", Binary: binary, Dir: cluster.Dir(), Flags: []string{"--enable", "nodepool",
			"--kubeconfig", cluster.Kubeconfig()},
	})
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, process.Stop()) })
	r.ledger.watchInstances(r.TB, r.app.Namespace+"-instances")
}

func (r *ramp) bufferStatically() {
	_, err := shared.stack.Cluster.Apply(r.Context(), []byte(bufferManifest(r.app.Namespace, r.app.Name, staticBuffer)))
	require.NoError(r, err)
}

var predictedMetrics = schema.GroupVersionResource{Group: "foresail.dev", Version: "v1alpha1",
	Resource: "predictedmetrics"}

// bufferByForecast has Foresail keep the buffer. It keeps spare pods for five minutes, which is not scaled.
func (r *ramp) bufferByForecast() {
	require.NoError(r, foresail.Apply(r.Context(), shared.stack.Cluster, "components/capacity-buffer/rbac.yaml"))
	patch := fmt.Appendf(nil, `{"spec":{"capacityBuffer":{"nodeStartupTime":%q}}}`, nodeStart+3*time.Second)
	metrics := shared.stack.Cluster.Dynamic().Resource(predictedMetrics).Namespace(r.app.Namespace)
	_, err := metrics.Patch(r.Context(), r.app.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(r, err)
}

// buffered waits until there are nodes for the static buffer.
func (r *ramp) buffered() {
	a := app{TB: r.TB, Name: r.app.Namespace}
	eventually(r.TB, nodeStart+time.Minute, "the nodes of the buffer", func(c *assert.CollectT) {
		assert.True(c, bufferStatusOf(c, r.app.Namespace, r.app.Name).fits())
		assert.GreaterOrEqual(c, podsPerNode*len(a.nodes(c)), fewest+staticBuffer)
	})
	// The one thing that is asserted: Karpenter has acted on the buffer before a pod needed it.
	for _, pod := range a.pods(r) {
		assert.NotEmpty(r, pod.Spec.NodeName, "no pod waits for the nodes that the buffer has")
	}
}

// play has all applications carry the load from the same moment on.
func play(t testing.TB, ramps []*ramp) {
	t.Helper()
	load := profile()
	ctx, cancel := context.WithTimeoutCause(t.Context(), load.Duration(), errors.New("the ramp is over"))
	defer cancel()
	begin := time.Now()
	var group errgroup.Group
	for _, r := range ramps {
		group.Go(func() error { return shared.stack.Carry(ctx, r.app, load, r.look) })
	}
	require.NoError(t, group.Wait())
	end := time.Now()
	for _, r := range ramps {
		r.figures = r.ledger.figures(begin, end)
	}
}

// look keeps a second of the ramp.
func (r *ramp) look(m stack.Moment) {
	buffer, err := bufferSize(r.app)
	r.run.Moments = append(r.run.Moments, m)
	if err == nil {
		r.buffers = append(r.buffers, buffer)
	}
	if why := r.explained(); why != r.why {
		r.why = why
		r.Logf("%-8s %3.0f s  %s", r.name, m.At.Seconds(), why)
	}
	if len(r.run.Moments)%10 == 0 {
		r.Logf("%-8s %3.0f s  %5.2f pods' worth  %2d replicas  %2d ready  %2d instances  buffer %2d  %v", r.name,
			m.At.Seconds(),
			m.Rate*serviceTime.Seconds()/r.app.Threshold.AsApproximateFloat64(), m.Replicas, m.Ready, r.ledger.instancesNow(), buffer, err)
	}
}

// explained is what Foresail reports of the buffer that it keeps; "" if it keeps none.
func (r *ramp) explained() string {
	metrics := shared.stack.Cluster.Dynamic().Resource(predictedMetrics).Namespace(r.app.Namespace)
	object, err := metrics.Get(shared, r.app.Name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	conditions, err := conditionsOf(object)
	if err != nil {
		return err.Error()
	}
	if c := meta.FindStatusCondition(conditions, "CapacityBufferReady"); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

// bufferSize is what the CapacityBuffer of an application asks for; 0 if there is none.
func bufferSize(a stack.App) (int, error) {
	object, err := shared.stack.Cluster.Dynamic().Resource(karpenter.CapacityBuffers).Namespace(a.Namespace).Get(shared,
		a.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	replicas, _, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return int(replicas), err
}

// report has the benchmark print what the ramp cost.
func (r *ramp) report(b *testing.B) {
	sum, most := 0, 0
	for _, n := range r.buffers {
		sum, most = sum+n, max(most, n)
	}
	b.ReportMetric(0, "ns/op") // the ramp takes as long as it is told to
	b.ReportMetric(r.figures.pending.Seconds(), "pending-pod-seconds")
	b.ReportMetric(float64(r.figures.waited), "pods-that-waited")
	b.ReportMetric(float64(r.run.SecondsAbove()), "seconds-above-threshold")
	b.ReportMetric(float64(r.run.Shortfall()), "pod-seconds-short")
	b.ReportMetric(r.figures.nodes.Seconds(), "node-seconds")
	b.ReportMetric(float64(r.figures.most), "nodes-at-most")
	b.ReportMetric(float64(sum)/float64(max(1, len(r.buffers))), "buffer-mean")
	b.ReportMetric(float64(most), "buffer-at-most")
}

package predictedmetric

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/api/v1alpha1"
)

// fakeSource keeps the specs that it was set to.
type fakeSource map[types.NamespacedName]v1alpha1.PredictedMetricSpec

func (f fakeSource) Set(key types.NamespacedName, spec *v1alpha1.PredictedMetricSpec,
	_ *podtracker.TargetPods, _ source.Sink) error {
	f[key] = *spec.DeepCopy()
	return nil
}

func (f fakeSource) Remove(key types.NamespacedName) { delete(f, key) }

func (f fakeSource) Run(context.Context) error { return nil }

func fakeSources() source.Set {
	set := source.Set{}
	for _, name := range v1alpha1.SourceNames() {
		set[name] = fakeSource{}
	}
	return set
}

// cluster is the objects that a reconciler sees.
type cluster struct {
	*Reconciler
	t     *testing.T
	scale *autoscalingv1.Scale // nil: the target does not exist
}

// set returns the spec that a source was set to for the key.
func (c *cluster) set(name string) (v1alpha1.PredictedMetricSpec, bool) {
	spec, ok := c.Sources[name].(fakeSource)[key]
	return spec, ok
}

// setCount returns how many specs are set, over all sources.
func (c *cluster) setCount() (n int) {
	for _, s := range c.Sources {
		n += len(s.(fakeSource))
	}
	return n
}

var key = types.NamespacedName{Namespace: "shop", Name: "checkout"}

func newCluster(t *testing.T, pms ...client.Object) *cluster {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := &cluster{t: t, scale: &autoscalingv1.Scale{
		Spec:   autoscalingv1.ScaleSpec{Replicas: 3},
		Status: autoscalingv1.ScaleStatus{Selector: "app=checkout"},
	}}
	scales := &scalefake.FakeScaleClient{}
	scales.AddReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		if c.scale == nil {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"},
				"checkout")
		}
		return true, c.scale, nil
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Game"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Deployment"},
		meta.RESTScopeNamespace)
	c.Reconciler = &Reconciler{
		Client:     fake.NewClientBuilder().WithScheme(scheme).WithObjects(pms...).Build(),
		Scales:     &Scales{Client: scales, Mapper: mapper},
		Tracker:    podtracker.NewTracker(podtracker.Options{}),
		Forecaster: forecaster.New(time.Now, prometheus.NewRegistry(), forecaster.Options{}),
		Sources:    fakeSources(),
		Now:        time.Now,
		reads:      newReads(),
	}
	c.kinds = &kinds{
		state:   map[schema.GroupKind]kindState{},
		allowed: func(context.Context, schema.GroupVersionResource) (bool, error) { return false, nil },
		watch:   func(schema.GroupVersionKind) error { return nil },
		unwatch: func(context.Context, schema.GroupVersionKind) error { return nil },
		served:  func(schema.GroupVersionKind) bool { return true },
	}
	return c
}

func (c *cluster) reconcile() time.Duration {
	result, err := c.Reconcile(c.t.Context(), reconcile.Request{NamespacedName: key})
	require.NoError(c.t, err)
	return result.RequeueAfter
}

// assertResync asserts that a PredictedMetric is reconciled again without an event, and not because
// its scale is polled.
func assertResync(t *testing.T, after time.Duration, because ...any) {
	t.Helper()
	assert.GreaterOrEqual(t, after, resync/10, because...)
	assert.Less(t, after, resync+resync/10, because...)
}

// Thousands that are reconciled at one moment, as at a start, are not so again.
func TestResyncsAreSpread(t *testing.T) {
	const metrics, parts = 6000, 60
	begun := time.Unix(1_800_000_000, 0)
	var counts [parts + parts/10]int
	for i := range metrics {
		of := types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("app-", i)}
		first := resyncAfter(of, begun)
		assertResync(t, first)
		counts[first*parts/resync]++
		again := resyncAfter(of, begun.Add(first))
		assert.Equal(t, resync, again, "from then on it is regular")
		assert.InDelta(t, 2*resync, again+resyncAfter(of, begun.Add(first+again+time.Second))+time.Second, 1)
	}
	for part, n := range counts {
		assert.Less(t, n, 2*metrics/parts, "in part %d of the time", part)
	}
}

func predictedMetric() *v1alpha1.PredictedMetric {
	return &v1alpha1.PredictedMetric{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: v1alpha1.PredictedMetricSpec{
			ScaleTargetRef: v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "checkout"},
			Source:         v1alpha1.Source{Pods: &v1alpha1.PodsSource{Port: intstr.FromInt32(9090), Metric: "elu"}},
			Threshold:      resource.MustParse("700m"),
			MaxReplicas:    new(int32(10)),
		},
	}
}

func TestReconcileFollowsAndForgets(t *testing.T) {
	pm := predictedMetric()
	c := newCluster(t, pm)
	require.Error(t, c.Settled(t.Context()))
	assertResync(t, c.reconcile())
	require.NoError(t, c.Settled(t.Context()))
	require.NoError(t, c.problems.get(key).err)
	spec, ok := c.set("pods")
	require.True(t, ok)
	assert.Equal(t, "/metrics", spec.Source.Pods.Path, "the defaults are filled in")
	assert.Equal(t, time.Second, spec.Source.Pods.Interval.Duration)
	s, ok := c.Forecaster.Get(key)
	require.True(t, ok)
	assert.InDelta(t, 0.7, s.Threshold, 0)
	assert.Equal(t, "Deployment", s.TargetKind)

	require.NoError(t, c.Client.Delete(t.Context(), pm))
	c.reconcile()
	_, ok = c.Forecaster.Get(key)
	assert.False(t, ok)
	assert.Zero(t, c.setCount())
	assert.False(t, c.problems.known(key))
}

func TestReconcileReportsErrorsOfTheTarget(t *testing.T) {
	for want, change := range map[string]func(*cluster, *v1alpha1.PredictedMetric){
		`spec.scaleTargetRef: the scale of Deployment shop/checkout cannot be read`: func(c *cluster,
			_ *v1alpha1.PredictedMetric) {
			c.scale = nil
		},
		`the scale of Deployment checkout has no selector`: func(c *cluster,
			_ *v1alpha1.PredictedMetric) {
			c.scale.Status.Selector = ""
		},
		`has the selector "=="`: func(c *cluster, _ *v1alpha1.PredictedMetric) {
			c.scale.Status.Selector = "=="
		},
		`the cluster has no kind Deploy in apps/v1`: func(_ *cluster, pm *v1alpha1.PredictedMetric) {
			pm.Spec.ScaleTargetRef.Kind = "Deploy"
		},
		`"a/b/c": must be GROUP/VERSION, such as apps/v1`: func(_ *cluster, pm *v1alpha1.PredictedMetric) {
			pm.Spec.ScaleTargetRef.APIVersion = "a/b/c"
		},
	} {
		t.Run(want, func(t *testing.T) {
			pm := predictedMetric()
			c := newCluster(t)
			change(c, pm)
			require.NoError(t, c.Client.Create(t.Context(), pm))
			_, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			require.Error(t, err, "which makes the queue try again")
			p := c.problems.get(key)
			assert.True(t, p.target)
			assert.ErrorContains(t, p.err, want)
		})
	}
}

// A spec that cannot be used is not followed, whatever was there before.
func TestReconcileRejectsInvalidSpecs(t *testing.T) {
	pm := predictedMetric()
	c := newCluster(t, pm)
	c.reconcile()
	pm.Spec.MinReplicas = new(int32(20))
	require.NoError(t, c.Client.Update(t.Context(), pm))
	assertResync(t, c.reconcile(), "a file that it names may be mended")
	p := c.problems.get(key)
	assert.False(t, p.target)
	assert.ErrorContains(t, p.err, "maxReplicas: 10: must be at least minReplicas (20)")
	refused, ok := c.Forecaster.Get(key)
	require.True(t, ok)
	assert.ErrorContains(t, refused.Err, "must be at least minReplicas (20)")
	assert.Zero(t, c.setCount())
}

// The doors know of dry run as soon as the spec has been processed, whether it can be used or not.
// What is known of the load stays.
func TestReconcileTakesDryRunOver(t *testing.T) {
	pm := predictedMetric()
	c := newCluster(t, pm)
	dryRun := func(change func(*v1alpha1.PredictedMetricSpec)) bool {
		t.Helper()
		change(&pm.Spec)
		require.NoError(t, c.Client.Update(t.Context(), pm))
		c.reconcile()
		s, ok := c.Forecaster.Get(key)
		require.True(t, ok)
		return s.DryRun
	}
	assert.False(t, dryRun(func(*v1alpha1.PredictedMetricSpec) {}))
	assert.True(t, dryRun(func(s *v1alpha1.PredictedMetricSpec) { s.DryRun = true }))
	assert.Equal(t, 1, c.setCount(), "it is read as any other")
	assert.True(t, dryRun(func(s *v1alpha1.PredictedMetricSpec) { s.MinReplicas = new(int32(20)) }),
		"of a rejected spec")
	assert.False(t, dryRun(func(s *v1alpha1.PredictedMetricSpec) { s.MinReplicas, s.DryRun = nil, false }))
}

// A kind of the same name in another group is not the one that is watched.
func TestReconcilePollsNamesakesOfWatchedKinds(t *testing.T) {
	pm := predictedMetric()
	pm.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "example.com/v1", Kind: "Deployment", Name: "checkout"}
	assert.Equal(t, poll, newCluster(t, pm).reconcile())
}

func TestSettledOnceIsSettled(t *testing.T) {
	c := newCluster(t, predictedMetric())
	c.reconcile()
	require.NoError(t, c.Settled(t.Context()))
	late := predictedMetric()
	late.Name = "late"
	require.NoError(t, c.Client.Create(t.Context(), late))
	assert.NoError(t, c.Settled(t.Context()))
}

func TestReconcileChangesTheSource(t *testing.T) {
	pm := predictedMetric()
	c := newCluster(t, pm)
	c.reconcile()
	for _, selected := range []v1alpha1.Source{
		{Prometheus: &v1alpha1.PrometheusSource{Address: "http://prometheus:9090", Query: "elu"}},
		{RemoteWrite: &v1alpha1.RemoteWriteSource{Metric: "requests_total", Type: v1alpha1.MetricCounter,
			MatchLabels: map[string]string{"app": "checkout"}}},
		{Resource: &v1alpha1.ResourceSource{Name: v1alpha1.ResourceCPU, Container: "main"}},
		predictedMetric().Spec.Source,
	} {
		pm.Spec.Source = selected
		require.NoError(t, c.Client.Update(t.Context(), pm))
		c.reconcile()
		require.NoError(t, c.problems.get(key).err)
		spec, ok := c.set(selected.Name())
		require.True(t, ok, selected.Name())
		require.NotNil(t, spec.Horizon.Max, "defaults are filled in")
		assert.Equal(t, 1, c.setCount(), "the previous source must stop")
		s, _ := c.Forecaster.Get(key)
		assert.Equal(t, selected.Name(), s.Source)
	}
}

// The pods that a target had before its selector moved are the past of its load; those of another target are not.
func TestReconcileFollowsTheSelector(t *testing.T) {
	c := newCluster(t, predictedMetric())
	ready := func(name, track string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, UID: types.UID(name),
				Labels: map[string]string{"track": track}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
			}}},
		}
	}
	c.Tracker.Update(ready("old", "blue"))
	c.Tracker.Update(ready("new", "green"))
	instances := func() map[string]bool {
		active := map[string]bool{}
		selector, err := labels.Parse(c.scale.Status.Selector)
		require.NoError(t, err)
		for _, i := range c.Tracker.Follow(key, key.Namespace, selector).Instances(time.Time{}) {
			active[i.ID] = i.End.IsZero()
		}
		return active
	}
	c.scale.Status.Selector = "track=blue"
	c.reconcile()
	c.scale.Status.Selector = "track=green"
	c.reconcile()
	assert.Equal(t, map[string]bool{"old": false, "new": true}, instances())

	pm := predictedMetric()
	require.NoError(t, c.Client.Get(t.Context(), key, pm))
	pm.Spec.ScaleTargetRef.Name = "another"
	require.NoError(t, c.Client.Update(t.Context(), pm))
	c.reconcile()
	assert.Equal(t, map[string]bool{"new": true}, instances())
}

// What an API server leaves to the method is filled in before anything reads it.
func TestReconcileFillsInDefaultsOfTheMethod(t *testing.T) {
	pm := predictedMetric()
	pm.Spec.Source = v1alpha1.Source{Prometheus: &v1alpha1.PrometheusSource{Address: "http://prometheus:9090",
		Query: "elu"}}
	require.Nil(t, pm.Spec.Horizon.Max)
	c := newCluster(t, pm)
	c.reconcile()
	require.NoError(t, c.problems.get(key).err)
	spec, _ := c.set("prometheus")
	assert.Equal(t, 20*time.Minute, spec.Horizon.Max.Duration)

	var stored v1alpha1.PredictedMetric
	require.NoError(t, c.Client.Get(t.Context(), key, &stored))
	assert.Equal(t, pm.Spec, stored.Spec, "it is no default of the object's")
}

// A source that brings the past along must find the pods that it is the past of.
func TestReconcileWaitsForThePods(t *testing.T) {
	c := newCluster(t, predictedMetric())
	var missing error = &podtracker.UnlistedError{Namespace: "shop"}
	c.Known = func(string) error { return missing }
	assert.Equal(t, knownPoll, c.reconcile())
	assert.Zero(t, c.setCount())
	require.Error(t, c.Settled(t.Context()))

	missing = &podtracker.UnlistedError{Namespace: "shop", Err: errors.New("forbidden"), Lasting: true}
	assert.Equal(t, poll, c.reconcile())
	require.NoError(t, c.Settled(t.Context()), "the others are not to wait for it")
	assert.ErrorContains(t, c.problems.get(key).err,
		"the pods of the namespace shop have not been listed yet: forbidden")
	missing = nil
	assertResync(t, c.reconcile())
	assert.Equal(t, 1, c.setCount())
}

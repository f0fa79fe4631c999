package capacitybuffer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/foresail/foresail/adapter/owned/ownedtest"
	"github.com/foresail/foresail/adapter/podtracker"
	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/objectcache"
	"github.com/foresail/foresail/pipeline"
)

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

// fixture is a cluster with a leader of Foresail, whose status writer is played by it, as is the node autoscaler.
type fixture struct {
	*testing.T
	client client.WithWatch
	ctx    context.Context

	mu       sync.Mutex
	failing  func(verb string, o client.Object) error // nil: no request fails
	writes   []string                                 // of buffers
	requests []string
	served   map[string][]string // resources by group and version
	forecast map[string]snapshot.Snapshot

	*Controller
	recorder *events.FakeRecorder
	stop     context.CancelFunc
	running  sync.WaitGroup
}

var errNotServed = apierrors.NewNotFound(schema.GroupResource{}, "")

// ServerResourcesForGroupVersionWithContext implements Discovery.
func (f *fixture) ServerResourcesForGroupVersionWithContext(_ context.Context, gv string) (*metav1.APIResourceList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, "discover "+gv)
	names, ok := f.served[gv]
	if !ok {
		return nil, errNotServed
	}
	list := &metav1.APIResourceList{GroupVersion: gv}
	for _, name := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list, nil
}

// Get implements Forecasts. It hides the method of the embedded client, which nothing here calls.
func (f *fixture) Get(key types.NamespacedName) (snapshot.Snapshot, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.forecast[key.Name]
	if s.At.IsZero() {
		s.At, s.NewestSample = time.Now(), time.Now()
	}
	return s, ok
}

// play runs a test in virtual time.
func play(t *testing.T, objects []client.Object, test func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme() // of few kinds: the fake client goes through all with each write
		require.NoError(t, errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
		for _, version := range versions {
			list := kindOf(version)
			list.Kind += "List"
			scheme.AddKnownTypeWithName(kindOf(version), &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(list, &unstructured.UnstructuredList{})
		}
		ctx, cancel := context.WithCancel(t.Context())
		f := &fixture{
			T: t, ctx: ctx, stop: func() {}, forecast: map[string]snapshot.Snapshot{},
			served: map[string][]string{group + "/v1": {"provisioningrequests"}, group + "/v1beta1": {"provisioningrequests", resource}},
		}
		f.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithStatusSubresource(&v1alpha1.PredictedMetric{}).Build(), f.intercepted())
		defer f.running.Wait()
		defer cancel()
		test(f)
	})
}

func isBuffer(o client.Object) bool { return o.GetObjectKind().GroupVersionKind().Kind == kind }

// intercepted records the requests, and fails those that a test wants to fail.
func (f *fixture) intercepted() interceptor.Funcs {
	write := func(verb string, o client.Object) error {
		if err := f.request(verb, o); err != nil || !isBuffer(o) {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		n, _ := replicasIn(specIn(o.(*unstructured.Unstructured)))
		f.writes = append(f.writes, fmt.Sprintf("%s %s %d", verb, o.GetName(), n))
		return nil
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if len(opts) > 0 { // not the test's own
				if err := write("create", o); err != nil {
					return err
				}
				o.SetCreationTimestamp(metav1.Now())
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := write("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if len(opts) > 0 {
				if err := write("delete", o); err != nil {
					return err
				}
			}
			return c.Delete(ctx, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if err := f.request(fmt.Sprintf("list %T", l), nil); err != nil {
				return err
			}
			return c.List(ctx, l, opts...)
		},
	}
}

func (f *fixture) request(verb string, o client.Object) error {
	f.mu.Lock()
	why := f.failing
	f.requests = append(f.requests, verb)
	f.mu.Unlock()
	if why == nil {
		return nil
	}
	return why(verb, o)
}

// fail has requests fail from now on.
func (f *fixture) fail(why func(verb string, o client.Object) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = why
}

// serve has resources served in a version, none: the version is not.
func (f *fixture) serve(version string, resources ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.served, group+"/"+version)
	if len(resources) > 0 {
		f.served[group+"/"+version] = resources
	}
}

// expect has the forecast desire pods now, and once a node has started.
func (f *fixture) expect(now, then int) { f.expectOf("checkout", now, then) }

func (f *fixture) expectOf(name string, now, then int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forecast[name] = snapshot.Snapshot{
		StaleAfter: time.Minute, Combined: snapshot.Combined{Desired: now, Metrics: 1},
		Forecast: pipeline.Forecast{
			Target: now, Horizon: 40 * time.Second, Window: 5 * time.Minute, Decision: pipeline.Decision{Desired: now},
			Farther: pipeline.Farther{Horizon: 160 * time.Second, Desired: then, WindowNeeded: 128 * time.Second},
		},
	}
}

// bound has bounds hold with schedules from now on.
func (f *fixture) bound(b *pipeline.Bounds) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.forecast["checkout"]
	s.Bounds = b
	f.forecast["checkout"] = s
}

// lose has no forecast from now on.
func (f *fixture) lose(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.forecast["checkout"]
	s.Err = &snapshot.Unavailable{Reason: snapshot.Stale, Message: reason}
	f.forecast["checkout"] = s
}

// lead starts a process that leads, after the one before was killed.
func (f *fixture) lead() {
	f.Helper()
	f.stop()
	f.running.Wait()
	f.recorder = events.NewFakeRecorder(100)
	nodes := objectcache.Nodes(kubefake.NewClientset())
	f.Controller = &Controller{
		Metrics: ownedtest.Metrics(f, f.client), Client: f.client, Discovery: f, Forecasts: f, Events: f.recorder, Now: time.Now,
		Nodes: &Nodes{Feed: nodes, Waits: func() []podtracker.Wait { return nil }, Now: time.Now},
	}
	ctx, cancel := context.WithCancel(f.ctx)
	f.stop = cancel
	f.running.Go(func() { nodes.Run(ctx) })
	f.running.Go(func() { assert.NoError(f, f.Start(ctx)) })
	synctest.Wait()
}

// pass lets the leader and the writer of the status do what there is to do.
func (f *fixture) pass() {
	f.Helper()
	f.passFor(5 * checkPeriod)
}

func (f *fixture) passFor(d time.Duration) {
	f.Helper()
	for range d / checkPeriod {
		time.Sleep(checkPeriod)
		synctest.Wait()
		f.writeStatus()
	}
}

// writeStatus is what predictedmetric.Writer does.
func (f *fixture) writeStatus() {
	f.Helper()
	var list v1alpha1.PredictedMetricList
	require.NoError(f, f.client.List(f.ctx, &list))
	for i := range list.Items {
		pm := &list.Items[i]
		state, known := f.State(pm.UID)
		switch {
		case known:
			pm.Status.CapacityBuffer = state.Buffer
		case pm.Spec.CapacityBuffer != nil && !announced(pm):
			state.Condition = condition(metav1.ConditionUnknown, "Pending", "")
		default:
			continue
		}
		if state.Condition == nil {
			meta.RemoveStatusCondition(&pm.Status.Conditions, v1alpha1.ConditionCapacityBufferReady)
		} else {
			meta.SetStatusCondition(&pm.Status.Conditions, *state.Condition)
		}
		require.NoError(f, f.client.Status().Update(f.ctx, pm))
	}
}

// autoscale is what a node autoscaler does to the status of a buffer.
func (f *fixture) autoscale(resolved, provisioning metav1.ConditionStatus) {
	f.Helper()
	b := f.buffer("checkout")
	var conditions []any
	for name, status := range map[string]metav1.ConditionStatus{conditionResolved: resolved, conditionProvisioning: provisioning} {
		conditions = append(conditions, map[string]any{
			"type": name, "status": string(status), "reason": "OfTheAutoscaler", "message": "its own words", "lastTransitionTime": "2030-01-01T00:00:00Z",
		})
	}
	require.NoError(f, unstructured.SetNestedSlice(b.Object, conditions, "status", "conditions"))
	require.NoError(f, f.client.Update(f.ctx, b))
}

func (f *fixture) buffer(name string) *unstructured.Unstructured { return f.bufferIn("v1beta1", name) }

func (f *fixture) bufferIn(version, name string) *unstructured.Unstructured {
	f.Helper()
	b := &unstructured.Unstructured{}
	b.SetGroupVersionKind(kindOf(version))
	err := f.client.Get(f.ctx, types.NamespacedName{Namespace: "shop", Name: name}, b)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(f, err)
	return b
}

// size is that of the buffer, -1 without one.
func (f *fixture) size() int {
	f.Helper()
	b := f.buffer("checkout")
	if b == nil {
		return -1
	}
	n, ok := replicasIn(specIn(b))
	require.True(f, ok)
	return n
}

func (f *fixture) metric(name string) *v1alpha1.PredictedMetric {
	f.Helper()
	var pm v1alpha1.PredictedMetric
	require.NoError(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: "shop", Name: name}, &pm))
	return &pm
}

// change updates a PredictedMetric as a user does.
func (f *fixture) change(name string, change func(*v1alpha1.PredictedMetric)) {
	f.Helper()
	pm := f.metric(name)
	change(pm)
	pm.Generation++
	require.NoError(f, f.client.Update(f.ctx, pm))
}

// resize is another's change of the size.
func (f *fixture) resize(replicas int64) {
	f.Helper()
	b := f.buffer("checkout")
	require.NoError(f, unstructured.SetNestedField(b.Object, replicas, "spec", "replicas"))
	require.NoError(f, f.client.Update(f.ctx, b))
}

// replace deletes a PredictedMetric and creates it again. Nobody deletes its buffer here.
func (f *fixture) replace(name string, uid types.UID) {
	f.Helper()
	pm := f.metric(name)
	require.NoError(f, f.client.Delete(f.ctx, pm))
	pm.UID, pm.ResourceVersion, pm.Status = uid, "", v1alpha1.PredictedMetricStatus{}
	require.NoError(f, f.client.Create(f.ctx, pm))
}

// removeBuffer is what the garbage collector does.
func (f *fixture) removeBuffer() {
	f.Helper()
	require.NoError(f, f.client.Delete(f.ctx, f.buffer("checkout")))
}

// condition is the status of a PredictedMetric: the condition, its reason, and the buffer.
func (f *fixture) condition(name string) string {
	f.Helper()
	pm := f.metric(name)
	owned := ""
	if b := pm.Status.CapacityBuffer; b != nil {
		owned = b.Name
	}
	c := meta.FindStatusCondition(pm.Status.Conditions, v1alpha1.ConditionCapacityBufferReady)
	if c == nil {
		return strings.TrimSpace("none " + owned)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, owned))
}

func (f *fixture) message(name string) string {
	return meta.FindStatusCondition(f.metric(name).Status.Conditions, v1alpha1.ConditionCapacityBufferReady).Message
}

func (f *fixture) sent() []string { return ownedtest.SentReasons(f.recorder) }

// wrote returns the writes to buffers since the last call.
func (f *fixture) wrote() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.writes
	f.writes = nil
	return out
}

func metricOf(name, target string, uid types.UID, age time.Duration) *v1alpha1.PredictedMetric {
	pm := &v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid, Generation: 1}}
	pm.CreationTimestamp = metav1.NewTime(epoch.Add(-age))
	pm.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: target}
	pm.Spec.MaxReplicas, pm.Spec.CapacityBuffer = new(int32(20)), &v1alpha1.CapacityBuffer{}
	return pm
}

func checkout() *v1alpha1.PredictedMetric {
	return metricOf("checkout", "checkout", "uid-1", time.Hour)
}

// foreign is a buffer that a user has made.
func foreign(name, target string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"scalableRef": map[string]any{"apiGroup": "apps", "kind": "Deployment", "name": target}, "replicas": int64(2),
	}}}
	o.SetGroupVersionKind(kindOf("v1beta1"))
	o.SetNamespace("shop")
	o.SetName(name)
	o.SetUID("theirs")
	return o
}

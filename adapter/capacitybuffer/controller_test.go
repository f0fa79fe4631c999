package capacitybuffer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/foresail/foresail/adapter/owned"
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
		scheme := runtime.NewScheme()
		require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
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

// sent returns the reasons of the events since the last call.
func (f *fixture) sent() (out []string) {
	for {
		select {
		case e := <-f.recorder.Events:
			out = append(out, strings.Join(strings.Fields(e)[:2], " "))
		default:
			return out
		}
	}
}

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

func TestCreatesAndSizes(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 11)
		f.lead()
		f.pass()
		assert.Equal(f, "Unknown WaitingForNodeAutoscaler checkout", f.condition("checkout"))
		assert.Equal(f, []string{"Normal CapacityBufferCreated"}, f.sent())
		assert.Equal(f, []string{"create checkout 3"}, f.wrote())
		b := f.buffer("checkout")
		assert.Equal(f, map[string]any{
			"scalableRef": map[string]any{"apiGroup": "apps", "kind": "Deployment", "name": "checkout"},
			"replicas":    int64(3), "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
		}, specIn(b))
		owner := metav1.GetControllerOf(b)
		require.NotNil(f, owner)
		assert.Equal(f, types.UID("uid-1"), owner.UID)
		assert.Nil(f, owner.BlockOwnerDeletion, "it takes a right that Foresail does not have")
		assert.Equal(f, managedBy, b.GetLabels()[labelManagedBy])

		f.autoscale(metav1.ConditionTrue, metav1.ConditionTrue)
		f.pass()
		assert.Equal(f, "True SizedByForecast checkout", f.condition("checkout"))
		assert.Contains(f, f.message("checkout"), "3 spare pods: 11 pods are desired in 2m40s, 8 now; a node takes 2m0s to start (assumed")
		assert.Contains(f, f.message("checkout"), "Provisioning is True (OfTheAutoscaler)")
		assert.Equal(f, &v1alpha1.CapacityBufferStatus{
			Name: "checkout", Replicas: new(int32(3)), DesiredReplicas: new(int32(11)),
			NodeStartupTime: &metav1.Duration{Duration: assumedStartup}, NodesMeasured: new(int32(0)),
		}, f.metric("checkout").Status.CapacityBuffer)
		assert.Empty(f, f.wrote(), "nothing is written while the size is the same")

		f.expect(8, 14)
		time.Sleep(checkPeriod)
		synctest.Wait()
		assert.Equal(f, []string{"patch checkout 6"}, f.wrote(), "it grows at once")
		f.expect(14, 14)
		f.passFor(shrinkPeriod + checkPeriod)
		assert.Equal(f, 0, f.size(), "the pods have come")
		assert.Empty(f, f.sent(), "a size is no event")
	})
}

func TestShrinksOnceItHasNotBeenNeededForAWhile(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		f.expect(8, 8)
		f.passFor(defaultHold - 4*time.Second)
		assert.Equal(f, 6, f.size())
		assert.Contains(f, f.message("checkout"), "0 would do, the others were needed a short time ago")
		f.passFor(10 * time.Second)
		assert.Equal(f, 0, f.size())
		assert.Equal(f, []string{"create checkout 6", "patch checkout 0"}, f.wrote())

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) {
			pm.Spec.CapacityBuffer.ScaleDownStabilizationSeconds = new(int32(30))
		})
		f.expect(8, 12)
		f.pass()
		f.expect(8, 8)
		f.passFor(36 * time.Second)
		assert.Equal(f, 0, f.size(), "as the user says")

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) {
			pm.Spec.CapacityBuffer = &v1alpha1.CapacityBuffer{NodeStartupTime: &metav1.Duration{Duration: 8 * time.Minute}}
		})
		f.expect(8, 12)
		f.pass()
		f.expect(8, 8)
		f.passFor(8*time.Minute - 10*time.Second)
		assert.Equal(f, 4, f.size(), "a node that is let go costs its startup time again")
		assert.Contains(f, f.message("checkout"), "a node takes 8m0s to start (as set)")
		f.passFor(20 * time.Second)
		assert.Equal(f, 0, f.size())
	})
}

// While pods come one after the other, not each of them is a write.
func TestWritesAreFew(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 18)
		f.lead()
		f.pass()
		for now := 8; now <= 18; now++ {
			f.expect(now, 18)
			f.passFor(2 * checkPeriod)
		}
		f.passFor(shrinkPeriod)
		assert.Equal(f, 0, f.size())
		assert.LessOrEqual(f, len(f.wrote()), 7)
	})
}

func TestNextLeaderHoldsTheSize(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		f.expect(8, 8)
		f.lead()
		f.passFor(defaultHold - 4*time.Second)
		assert.Equal(f, 6, f.size())
		f.passFor(10 * time.Second)
		assert.Equal(f, 0, f.size())
	})
}

func TestWithoutAForecastTheSizeStays(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lose("the newest sample is 40s old")
		f.lead()
		f.pass()
		assert.Equal(f, "Unknown NoForecast", f.condition("checkout"))
		assert.Contains(f, f.message("checkout"), "the newest sample is 40s old")
		assert.Equal(f, -1, f.size(), "unknown is not zero")

		f.expect(8, 14)
		f.pass()
		f.autoscale(metav1.ConditionTrue, metav1.ConditionTrue)
		f.lose("the newest sample is 50s old")
		f.passFor(6 * time.Minute)
		assert.Equal(f, 6, f.size())
		assert.Equal(f, "Unknown NoForecast checkout", f.condition("checkout"))
		f.expect(8, 8)
		f.passFor(4 * time.Minute)
		assert.Equal(f, 6, f.size(), "what nobody knew was not needed any less")
		f.passFor(2 * time.Minute)
		assert.Equal(f, 0, f.size())
	})
}

// Bounds and ownership need no forecast.
func TestWithoutAForecastTheSizeIsBounded(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		require.Equal(f, 6, f.size())
		f.lose("the newest sample is 50s old")
		f.resize(1000)
		f.pass()
		assert.Equal(f, 6, f.size(), "another's change is undone")
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.CapacityBuffer.MaxReplicas = new(int32(2)) })
		f.pass()
		assert.Equal(f, 2, f.size())
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.ScaleTargetRef.Name = "another" })
		f.pass()
		assert.Equal(f, 0, f.size(), "it was that of another target")
	})
}

// A leader that finds an empty buffer does not know since when it is.
func TestAnotherLeaderKeepsAnEmptyBufferForAWhile(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.CapacityBuffer = nil })
		f.passFor(2 * checkPeriod)
		require.Equal(f, 0, f.size())
		f.lead()
		f.passFor(emptyPeriod - checkPeriod)
		assert.Equal(f, 0, f.size(), "it is still there")
		f.passFor(5 * checkPeriod)
		assert.Equal(f, -1, f.size())
	})
}

// The garbage collector deletes the buffer of a PredictedMetric that is gone: the one that takes its place says nothing about it.
func TestBufferOfThePredecessorIsWaitedFor(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		f.sent()
		f.replace("checkout", "uid-2")
		f.passFor(10 * checkPeriod)
		assert.Empty(f, f.sent())
		f.removeBuffer()
		f.passFor(2 * checkPeriod)
		assert.Equal(f, 6, f.size())
	})
}

func TestBoundsOfTheSize(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(18, 40)
		f.lead()
		f.pass()
		assert.Equal(f, 2, f.size(), "no more than the target may have")
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) {
			pm.Spec.MaxReplicas, pm.Spec.CapacityBuffer.MaxReplicas, pm.Spec.CapacityBuffer.MinReplicas = nil, new(int32(5)), new(int32(1))
		})
		f.pass()
		assert.Equal(f, 5, f.size())
		assert.Contains(f, f.message("checkout"), "and more are not allowed")
		f.expect(40, 40)
		f.passFor(defaultHold + 10*time.Second)
		assert.Equal(f, 1, f.size())
	})
}

// Nodes are started ahead of a window by the time that they take, for as many pods as there may be in it.
func TestBoundsOfSchedules(t *testing.T) {
	pm := checkout()
	pm.Spec.Schedules = []v1alpha1.Schedule{{Name: "event", MinReplicas: new(int32(30)), MaxReplicas: new(int32(100))}}
	play(t, []client.Object{pm}, func(f *fixture) {
		f.expect(8, 30)
		f.bound(&pipeline.Bounds{Min: 1, Max: 20, FartherMin: 30, FartherMax: 100})
		f.lead()
		f.pass()
		assert.Equal(f, 22, f.size())
		f.expect(8, 30)
		f.bound(&pipeline.Bounds{Min: 1, Max: 20, FartherMin: 1, FartherMax: 20})
		f.pass()
		assert.Equal(f, 12, f.size(), "no more than the target may have then")
	})
}

func TestWithoutTheFieldNothingIsRead(t *testing.T) {
	pm := checkout()
	pm.Spec.CapacityBuffer = nil
	play(t, []client.Object{pm, foreign("checkout", "checkout")}, func(f *fixture) {
		f.lead()
		f.pass()
		assert.Equal(f, "none", f.condition("checkout"))
		assert.Zero(f, f.Nodes.StartupTime(), "nodes neither")
		assert.Equal(f, []string{"list *v1alpha1.PredictedMetricList"}, slices.Compact(f.requests))
	})
}

func TestRemovesWithTheField(t *testing.T) {
	play(t, []client.Object{checkout(), foreign("other", "other")}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		f.sent()
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.CapacityBuffer = nil })
		f.wrote()
		f.pass()
		assert.Equal(f, "Unknown Removing checkout", f.condition("checkout"))
		assert.Zero(f, f.size(), "Karpenter 1.14 lets go of the nodes of an empty buffer, and not of a deleted one")
		f.passFor(emptyPeriod)
		assert.Equal(f, []string{"patch checkout 0", "delete checkout 0"}, f.wrote())
		assert.Nil(f, f.buffer("checkout"))
		assert.NotNil(f, f.buffer("other"))
		assert.Equal(f, "none", f.condition("checkout"))
		assert.Equal(f, []string{"Normal CapacityBufferDeleted"}, f.sent())
	})
}

// TestBuffersOfOthersAreNeverTouched has buffers of the very name, and of the very target, be somebody else's.
func TestBuffersOfOthersAreNeverTouched(t *testing.T) {
	orphan := foreign("checkout", "elsewhere")
	orphan.SetOwnerReferences([]metav1.OwnerReference{owned.Reference(metricOf("checkout", "checkout", "uid-0", 0))})
	impostor := foreign("checkout", "elsewhere")
	impostor.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "x/v1", Kind: "PredictedMetric", Name: "x", UID: "uid-1", Controller: new(true)}})
	for name, c := range map[string]struct {
		buffer *unstructured.Unstructured
		want   string
	}{
		"name":                           {foreign("checkout", "elsewhere"), "False NameTaken"},
		"target":                         {foreign("by-hand", "checkout"), "False TargetHasAnotherBuffer"},
		"both":                           {foreign("checkout", "checkout"), "False TargetHasAnotherBuffer"},
		"of a PredictedMetric that went": {orphan, "False NameTaken"},
		"owned by another kind":          {impostor, "False NameTaken"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []client.Object{checkout(), c.buffer}, func(f *fixture) {
				f.expect(8, 14)
				before := f.buffer(c.buffer.GetName())
				f.lead()
				f.passFor(predecessorPeriod + 5*checkPeriod)
				assert.Equal(f, c.want, f.condition("checkout"))
				assert.Contains(f, f.message("checkout"), c.buffer.GetName())
				assert.Equal(f, []string{"Warning " + strings.Fields(c.want)[1]}, f.sent())
				f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.CapacityBuffer = nil })
				f.pass()
				assert.Equal(f, "none", f.condition("checkout"))
				assert.Empty(f, f.wrote())
				assert.Equal(f, before, f.buffer(c.buffer.GetName()))

				f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.CapacityBuffer = &v1alpha1.CapacityBuffer{} })
				f.pass()
				require.NoError(f, f.client.Delete(f.ctx, before))
				f.passFor(owned.RetryPeriod)
				f.pass()
				assert.Equal(f, "Unknown WaitingForNodeAutoscaler checkout", f.condition("checkout"), "the way is free")
			})
		})
	}
}

func TestOlderOfTwoGetsTheTarget(t *testing.T) {
	play(t, []client.Object{checkout(), metricOf("younger", "checkout", "uid-2", time.Minute)}, func(f *fixture) {
		f.expect(8, 14)
		f.expectOf("younger", 8, 14)
		f.lead()
		f.pass()
		assert.Equal(f, "False TargetHasAnotherBuffer", f.condition("younger"))
		assert.Nil(f, f.buffer("younger"))
		assert.Equal(f, 6, f.size())
	})
}

// The owner may change between a read and the write that follows: the write fails then.
func TestReleasedBuffersAreNeverTouched(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		f.wrote()
		f.fail(func(verb string, o client.Object) error {
			if verb == "patch" && isBuffer(o) {
				f.fail(nil)
				b := f.buffer("checkout")
				b.SetOwnerReferences(nil)
				require.NoError(f, f.client.Update(f.ctx, b))
			}
			return nil
		})
		f.expect(8, 16)
		f.pass()
		assert.Equal(f, []string{"patch checkout 8"}, f.wrote(), "it was tried once")
		assert.Equal(f, 6, f.size())
		assert.Equal(f, "False TargetHasAnotherBuffer", f.condition("checkout"))
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.CapacityBuffer = nil })
		f.pass()
		assert.Equal(f, 6, f.size())
		assert.Empty(f, f.wrote())
	})
}

func TestChangesOfOthersAreUndone(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		f.sent()
		b := f.buffer("checkout")
		require.NoError(f, unstructured.SetNestedField(b.Object, int64(50), "spec", "percentage"))
		b.SetAnnotations(map[string]string{"of": "somebody else"})
		require.NoError(f, f.client.Update(f.ctx, b))
		f.pass()
		assert.NotContains(f, specIn(f.buffer("checkout")), "percentage")
		assert.Equal(f, map[string]string{"of": "somebody else"}, f.buffer("checkout").GetAnnotations())
		assert.Equal(f, []string{"Normal CapacityBufferCorrected"}, f.sent())

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) {
			pm.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "v1", Kind: "ReplicationController", Name: "old"}
			pm.Spec.CapacityBuffer.ProvisioningStrategy = "buffer.gke.io/standby-capacity"
		})
		f.expect(4, 5)
		f.pass()
		assert.Equal(f, map[string]any{
			"scalableRef": map[string]any{"kind": "ReplicationController", "name": "old"},
			"replicas":    int64(1), "provisioningStrategy": "buffer.gke.io/standby-capacity",
		}, specIn(f.buffer("checkout")), "what was held was for another target")

		require.NoError(f, f.client.Delete(f.ctx, f.buffer("checkout")))
		f.pass()
		assert.Equal(f, 1, f.size(), "whoever does not want it takes spec.capacityBuffer away")
	})
}

func TestVersions(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.serve("v1beta1", "provisioningrequests")
		f.lead()
		f.pass()
		assert.Equal(f, "False NotServed", f.condition("checkout"), "the group has other kinds")
		assert.Contains(f, f.message("checkout"), "feature gate CapacityBuffer")
		assert.Equal(f, []string{"Warning NotServed"}, f.sent())
		f.passFor(2 * absentPeriod)
		assert.Empty(f, f.sent())

		f.serve("v1beta1", resource)
		f.passFor(absentPeriod + 4*time.Second)
		assert.Equal(f, 6, f.size())
		f.serve("v1", "provisioningrequests", resource)
		require.NoError(f, f.client.Delete(f.ctx, f.buffer("checkout"))) // the fake client keeps each version by itself
		f.passFor(versionPeriod + time.Minute)
		assert.NotNil(f, f.bufferIn("v1", "checkout"))

		f.serve("v1")
		f.serve("v1beta1")
		f.passFor(versionPeriod + time.Minute)
		assert.Equal(f, "False NotServed", f.condition("checkout"))
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.CapacityBuffer = nil })
		f.pass()
		assert.Equal(f, "none", f.condition("checkout"))
	})
}

func TestWhatTheNodeAutoscalerSays(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.passFor(claimPeriod + 20*time.Second)
		assert.Equal(f, "False NoNodeAutoscaler checkout", f.condition("checkout"))
		for _, c := range []struct {
			resolved, provisioning metav1.ConditionStatus
			want                   string
		}{
			{metav1.ConditionFalse, metav1.ConditionFalse, "False NotReadyForProvisioning checkout"},
			{metav1.ConditionTrue, metav1.ConditionFalse, "False NotProvisioned checkout"},
			{metav1.ConditionTrue, metav1.ConditionTrue, "True SizedByForecast checkout"},
		} {
			f.autoscale(c.resolved, c.provisioning)
			f.pass()
			assert.Equal(f, c.want, f.condition("checkout"))
			if c.provisioning == metav1.ConditionFalse {
				assert.Contains(f, f.message("checkout"), "its own words")
			}
		}
		b := f.buffer("checkout")
		require.NoError(f, unstructured.SetNestedSlice(b.Object, []any{map[string]any{
			"type": conditionProvisioning, "status": "False", "reason": reasonRequiresNew, "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z",
		}}, "status", "conditions"))
		require.NoError(f, f.client.Update(f.ctx, b))
		f.pass()
		assert.Equal(f, "True NodesStarting checkout", f.condition("checkout"))

		f.expect(14, 14)
		f.autoscale(metav1.ConditionTrue, metav1.ConditionFalse)
		f.passFor(shrinkPeriod + 4*time.Second)
		assert.Equal(f, "True SizedByForecast checkout", f.condition("checkout"), "of no spare pod there is nothing to provision")
	})
}

// withoutErrorHandlers keeps client-go's handlers of errors away: they wait until virtual time has reached the real one.
func withoutErrorHandlers(t *testing.T) {
	t.Helper()
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
}

func TestRequestsThatFail(t *testing.T) {
	withoutErrorHandlers(t)
	buffers := schema.GroupResource{Group: group, Resource: resource}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: group, Kind: kind}, "checkout", nil)
	for name, c := range map[string]struct {
		verb string
		err  error
		want string
	}{
		"no right to create":      {"create", apierrors.NewForbidden(buffers, "checkout", errors.New("not granted")), "False Forbidden"},
		"no right to list":        {"list *unstructured.UnstructuredList", apierrors.NewForbidden(buffers, "", errors.New("not granted")), "False Forbidden"},
		"rejected":                {"create", invalid, "False RejectedByAPIServer"},
		"an API server that ends": {"create", apierrors.NewInternalError(errors.New("shutting down")), "Unknown Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []client.Object{checkout()}, func(f *fixture) {
				f.expect(8, 14)
				f.fail(func(verb string, _ client.Object) error {
					if verb == c.verb {
						return c.err
					}
					return nil
				})
				f.lead()
				for range 3 {
					f.pass()
				}
				assert.Equal(f, c.want, f.condition("checkout"))
				if c.want == "Unknown Pending" {
					f.passFor(failingPeriod + 2*checkPeriod)
					assert.Equal(f, "Unknown RequestsFail", f.condition("checkout"))
					assert.Contains(f, f.message("checkout"), c.err.Error())
				} else {
					assert.Contains(f, f.message("checkout"), c.err.Error(), "the words of the API server")
					assert.Equal(f, []string{"Warning " + strings.Fields(c.want)[1]}, f.sent())
				}
				f.fail(nil)
				f.passFor(2 * time.Minute)
				assert.Equal(f, 6, f.size())
			})
		})
	}
}

func TestRequestsOfANamespaceAreBounded(t *testing.T) {
	var objects []client.Object
	for i := range 3 * owned.TurnsPerCheck {
		name := fmt.Sprintf("m-%d", i)
		objects = append(objects, metricOf(name, name, types.UID(name), time.Hour))
	}
	other := metricOf("other", "other", "other", time.Hour)
	other.Namespace = "office"
	play(t, append(objects, other), func(f *fixture) {
		for _, o := range append(objects, other) {
			f.expectOf(o.GetName(), 8, 10)
		}
		f.lead()
		f.writeStatus() // Pending
		for len(f.wrote()) == 0 {
			time.Sleep(checkPeriod)
			synctest.Wait()
			f.mu.Lock()
			wrote := slices.Clone(f.writes)
			f.mu.Unlock()
			if len(wrote) > 0 {
				assert.Len(f, wrote, owned.TurnsPerCheck+1)
				assert.Contains(f, wrote, "create other 2")
			}
		}
		time.Sleep(2 * checkPeriod)
		synctest.Wait()
		assert.Len(f, f.wrote(), 2*owned.TurnsPerCheck)
	})
}

func TestMetricsOfTheLeader(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		assert.NoError(f, testutil.CollectAndCompare(f.Controller, strings.NewReader(`
# HELP foresail_capacity_buffer_replicas Spare pods that the CapacityBuffer of a PredictedMetric asks for.
# TYPE foresail_capacity_buffer_replicas gauge
foresail_capacity_buffer_replicas{namespace="shop",predictedmetric="checkout"} 6
# HELP foresail_capacity_buffer_node_startup_time_seconds Time from a pod that waits for a new node until it is scheduled, assumed or measured.
# TYPE foresail_capacity_buffer_node_startup_time_seconds gauge
foresail_capacity_buffer_node_startup_time_seconds 120
# HELP foresail_capacity_buffer_nodes_measured Nodes that the startup time of nodes is measured from; 0: it is assumed.
# TYPE foresail_capacity_buffer_nodes_measured gauge
foresail_capacity_buffer_nodes_measured 0
`)))
		f.stop()
		f.running.Wait()
		assert.Zero(f, testutil.CollectAndCount(f.Controller), "who does not lead knows nothing")
	})
}

// In dry run no buffer is created, and the one of before keeps its size, which is held when dry run ends.
func TestDryRunLeavesTheBufferAlone(t *testing.T) {
	pm := checkout()
	pm.Spec.DryRun = true
	play(t, []client.Object{pm}, func(f *fixture) {
		f.expect(8, 11)
		f.lead()
		f.pass()
		assert.Equal(f, "False DryRun", f.condition("checkout"))
		assert.Equal(f, []string{"Normal DryRun"}, f.sent())
		assert.Nil(f, f.buffer("checkout"))

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.DryRun = false })
		f.pass()
		assert.Equal(f, []string{"create checkout 3"}, f.wrote())

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.DryRun = true })
		f.pass()
		f.expect(8, 8)
		f.passFor(2 * defaultHold)
		f.resize(5)
		f.wrote()
		f.pass()
		assert.Equal(f, "False DryRun checkout", f.condition("checkout"))
		assert.Equal(f, new(int32(5)), f.metric("checkout").Status.CapacityBuffer.Replicas, "as somebody else has set it")
		assert.Equal(f, 5, f.size())
		assert.Empty(f, f.wrote())

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.DryRun = false })
		f.pass()
		assert.Equal(f, 5, f.size(), "it shrinks no sooner than one that was just needed")
		f.passFor(defaultHold + shrinkPeriod)
		assert.Equal(f, 0, f.size())

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.DryRun, pm.Spec.CapacityBuffer = true, nil })
		f.passFor(2 * emptyPeriod)
		assert.Nil(f, f.buffer("checkout"))
		assert.Equal(f, "none", f.condition("checkout"))
	})
}

package autoscaler

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
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/foresail/foresail/adapter/owned/ownedtest"
	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// fixture is a cluster with a leader of Foresail, whose status writer is played by it.
type fixture struct {
	*testing.T
	client client.WithWatch
	ctx    context.Context

	mu      sync.Mutex
	failing func(verb string, o client.Object) error // of writes and lists; nil: none
	writes  []string                                 // of HPAs
	deleted []metav1.Preconditions
	bounds  *pipeline.Bounds // that hold with schedules, nil while they are not known

	*Controller
	recorder *events.FakeRecorder
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// play runs a test in virtual time.
func play(t *testing.T, objects []client.Object, test func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme() // of few kinds: the fake client goes through all with each write
		require.NoError(t, errors.Join(autoscalingv2.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
		list := scaledObjectKind
		list.Kind += "List"
		scheme.AddKnownTypeWithName(scaledObjectKind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(list, &unstructured.UnstructuredList{})
		ctx, cancel := context.WithCancel(t.Context())
		f := &fixture{T: t, ctx: ctx, stop: func() {}}
		f.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithStatusSubresource(&v1alpha1.PredictedMetric{}).Build(), f.intercepted())
		defer f.running.Wait()
		defer cancel()
		test(f)
	})
}

// intercepted records what is written to HPAs, and fails what a test wants to fail.
func (f *fixture) intercepted() interceptor.Funcs {
	write := func(verb string, o client.Object) error {
		if err := f.faultOf(verb, o); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, ok := o.(*autoscalingv2.HorizontalPodAutoscaler); ok {
			f.writes = append(f.writes, verb+" "+o.GetName())
		}
		return nil
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := write("create", o); err != nil {
				return err
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
			if _, ok := o.(*autoscalingv2.HorizontalPodAutoscaler); !ok || len(opts) == 0 {
				return c.Delete(ctx, o, opts...) // the test's own
			}
			if err := write("delete", o); err != nil {
				return err
			}
			given := (&client.DeleteOptions{}).ApplyOptions(opts)
			f.mu.Lock()
			f.deleted = append(f.deleted, *given.Preconditions)
			f.mu.Unlock()
			return c.Delete(ctx, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if err := f.faultOf(fmt.Sprintf("list %T", l), nil); err != nil {
				return err
			}
			return c.List(ctx, l, opts...)
		},
	}
}

// fail has requests fail from now on.
func (f *fixture) fail(why func(verb string, o client.Object) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = why
}

func (f *fixture) faultOf(verb string, o client.Object) error {
	f.mu.Lock()
	why := f.failing
	f.mu.Unlock()
	if why == nil {
		return nil
	}
	return why(verb, o)
}

// lead starts a process that leads, after the one before was killed.
func (f *fixture) lead() {
	f.Helper()
	f.stop()
	f.running.Wait()
	f.recorder = events.NewFakeRecorder(100)
	f.Controller = &Controller{Metrics: ownedtest.Metrics(f, f.client), Client: f.client, Forecasts: bounded{f}, Events: f.recorder, Now: time.Now}
	ctx, cancel := context.WithCancel(f.ctx)
	f.stop = cancel
	f.running.Go(func() { assert.NoError(f, f.Start(ctx)) })
	synctest.Wait()
}

// bounded has snapshots without forecasts.
type bounded struct{ *fixture }

func (f bounded) Get(types.NamespacedName) (snapshot.Snapshot, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return snapshot.Snapshot{Bounds: f.bounds, Err: errors.New("no forecast")}, f.bounds != nil
}

// bound has bounds hold from now on.
func (f *fixture) bound(b *pipeline.Bounds) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bounds = b
}

// pass lets the leader and the writer of the status do what there is to do.
func (f *fixture) pass() {
	f.Helper()
	for range 4 {
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
			pm.Status.Autoscaler = state.HPA
		case pm.Spec.Autoscaler != nil && !announced(pm):
			state.Condition = &metav1.Condition{Type: v1alpha1.ConditionAutoscalerReady, Status: metav1.ConditionUnknown, Reason: "Pending"}
		default:
			continue
		}
		if state.Condition == nil {
			meta.RemoveStatusCondition(&pm.Status.Conditions, v1alpha1.ConditionAutoscalerReady)
		} else {
			meta.SetStatusCondition(&pm.Status.Conditions, *state.Condition)
		}
		require.NoError(f, f.client.Status().Update(f.ctx, pm))
	}
}

func (f *fixture) hpa(name string) *autoscalingv2.HorizontalPodAutoscaler {
	f.Helper()
	var h autoscalingv2.HorizontalPodAutoscaler
	err := f.client.Get(f.ctx, types.NamespacedName{Namespace: "shop", Name: name}, &h)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(f, err)
	return &h
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

// condition is the status of a PredictedMetric: the condition, its reason, and the HPA.
func (f *fixture) condition(name string) string {
	f.Helper()
	pm := f.metric(name)
	c := meta.FindStatusCondition(pm.Status.Conditions, v1alpha1.ConditionAutoscalerReady)
	if c == nil {
		return strings.TrimSpace("none " + pm.Status.Autoscaler)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, pm.Status.Autoscaler))
}

func (f *fixture) message(name string) string {
	return meta.FindStatusCondition(f.metric(name).Status.Conditions, v1alpha1.ConditionAutoscalerReady).Message
}

func (f *fixture) sent() []string { return ownedtest.SentReasons(f.recorder) }

// wrote returns the writes to HPAs since the last call.
func (f *fixture) wrote() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.writes
	f.writes = nil
	return out
}

func identified(pm *v1alpha1.PredictedMetric, uid types.UID, age time.Duration) *v1alpha1.PredictedMetric {
	pm.UID, pm.Generation = uid, 1
	pm.CreationTimestamp = metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).Add(-age))
	return pm
}

func checkout() *v1alpha1.PredictedMetric {
	return identified(metric("checkout", "checkout"), "uid-1", time.Hour)
}

// foreign is an HPA that a user has made.
func foreign(name, target string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "theirs"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}, MaxReplicas: 3,
		},
	}
}

func newScaledObject(name, target string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{"name": target}}}}
	o.SetGroupVersionKind(scaledObjectKind)
	o.SetNamespace("shop")
	o.SetName(name)
	return o
}

package hpa

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/adapter/keep/keeptest"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

var subject = keeptest.Subject{
	New: func(_ func(func(context.Context)), o keep.Options) keep.Runner { return New(o) },
	AddToScheme: func(scheme *runtime.Scheme) error {
		list := scaledObjectKind
		list.Kind += "List"
		scheme.AddKnownTypeWithName(scaledObjectKind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(list, &unstructured.UnstructuredList{})
		return autoscalingv2.AddToScheme(scheme)
	},
	Forecast: snapshot.Snapshot{Err: errors.New("no forecast")},
	Request: func(s *v1alpha1.PredictedMetricSpec, wanted bool) {
		s.Autoscaler = nil
		if wanted {
			s.Autoscaler, s.Threshold, s.MinReplicas = &v1alpha1.Autoscaler{}, resource.MustParse("700m"), new(int32(4))
		}
	},
	Owned:     func(s v1alpha1.PredictedMetricStatus) string { return s.Autoscaler },
	Condition: v1alpha1.ConditionAutoscalerReady, Contested: reasonContested, Kept: []string{"True AsRecommended"},
	Empty:   func() client.Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
	Foreign: foreign,
	Spec:    func(o client.Object) any { return *specOf(o) },
	Target:  func(o client.Object) string { return specOf(o).ScaleTargetRef.Name },
	Drift:   func(o client.Object) { specOf(o).MaxReplicas = 7 },
	Grow: func(f *keeptest.Fixture, name string) {
		f.Change(name, func(s *v1alpha1.PredictedMetricSpec) { s.MaxReplicas = new(int32(30)) })
	},
	List: "*v2.HorizontalPodAutoscalerList",
}

func TestLifecycle(t *testing.T) { keeptest.Lifecycle(t, subject) }

func TestOwnership(t *testing.T) { keeptest.Ownership(t, subject) }

func TestRequests(t *testing.T) { keeptest.Requests(t, subject) }

// foreign returns an HPA that a user has made.
func foreign(name, target string) client.Object {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("of-" + name)},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
				Name: target},
			MaxReplicas: 3,
		},
	}
}

func newScaledObject(name, target string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"scaleTargetRef": map[string]any{"name": target}}}}
	o.SetGroupVersionKind(scaledObjectKind)
	o.SetNamespace("shop")
	o.SetName(name)
	return o
}

// The HPA itself holds the bounds of a schedule, also while there is no forecast; it has the widest ones at no time.
func TestTheHPAHasTheBoundsThatHold(t *testing.T) {
	pm := subject.Checkout()
	pm.Spec.Schedules = scheduled()
	subject.Play(t, []client.Object{pm}, func(f *keeptest.Fixture) {
		bound := func(b *pipeline.Bounds) {
			f.Forecasts("checkout", func(s *snapshot.Snapshot) { s.Bounds = b })
		}
		has := func(fewest, most int32, why string) {
			f.Helper()
			f.Pass()
			o := f.Find("checkout")
			require.NotNil(f, o)
			assert.Equal(f, []int32{fewest, most}, []int32{*specOf(o).MinReplicas, specOf(o).MaxReplicas}, why)
			assert.Equal(f, "True AsRecommended checkout", f.Reports("checkout"))
		}
		f.Lead()
		f.Pass()
		assert.Nil(f, f.Find("checkout"), "its bounds are not known yet")
		assert.Equal(f, "Unknown Pending", f.Reports("checkout"))

		bound(&pipeline.Bounds{Min: 4, Max: 20})
		has(4, 20, "no window")
		bound(&pipeline.Bounds{Min: 30, Max: 100})
		has(30, 100, "ahead of a window")
		assert.Equal(f, []string{"Normal AutoscalerCreated", "Normal AutoscalerCorrected"}, f.Sent())

		bound(nil)
		f.Lead()
		f.Writes()
		has(30, 100, "the next leader does not know them yet")
		assert.Empty(f, f.Wrote())
		bound(&pipeline.Bounds{Min: 2, Max: 10})
		has(2, 10, "another window")

		bound(nil)
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.Schedules = nil })
		has(4, 20, "no schedules")
	})
}

func TestAnHPANeedsAMaximum(t *testing.T) {
	pm := subject.Checkout()
	pm.Spec.MaxReplicas = nil
	subject.Play(t, []client.Object{pm}, func(f *keeptest.Fixture) {
		f.Lead()
		f.Pass()
		assert.Equal(f, "False InvalidSpec", f.Reports("checkout"))
		assert.Contains(f, f.Message("checkout"), "spec.maxReplicas: absent")
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.MaxReplicas = new(int32(20)) })
		f.Pass()
		f.AssertKept("checkout")
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.MaxReplicas = nil })
		f.Pass()
		assert.Equal(f, "False InvalidSpec checkout", f.Reports("checkout"))
		assert.Equal(f, []string{"Warning InvalidSpec", "Normal AutoscalerCreated", "Warning InvalidSpec"}, f.Sent())
	})
}

func TestScaledObjectsHaveTheirTargets(t *testing.T) {
	subject.Play(t, []client.Object{subject.Checkout(), newScaledObject("checkout-keda", "checkout")},
		func(f *keeptest.Fixture) {
			f.Lead()
			f.Pass()
			assert.Equal(f, "False TargetHasAnotherAutoscaler", f.Reports("checkout"))
			assert.Equal(
				f, "ScaledObject checkout-keda scales Deployment checkout too: a second HorizontalPodAutoscaler is not created",
				f.Message("checkout"))
			require.NoError(f, f.Client.Delete(f.Context(), newScaledObject("checkout-keda", "checkout")))
			f.PassFor(scaledObjectPeriod)
			f.Pass()
			assert.Equal(f, "True AsRecommended checkout", f.Reports("checkout"))
		})
}

func TestScaledObjectsThatCannotBeListedHoldNothingUp(t *testing.T) {
	resource := schema.GroupResource{Group: "keda.sh", Resource: "scaledobjects"}
	for name, err := range map[string]error{
		"no such kind": &meta.NoKindMatchError{GroupKind: scaledObjectKind.GroupKind()},
		"gone":         apierrors.NewNotFound(resource, ""),
		"forbidden":    apierrors.NewForbidden(resource, "", errors.New("not granted")),
		"broken":       apierrors.NewInternalError(errors.New("conversion webhook")),
	} {
		t.Run(name, func(t *testing.T) {
			subject.Play(t, []client.Object{subject.Checkout()}, func(f *keeptest.Fixture) {
				f.FailRequests(func(verb string, _ client.Object) error {
					if strings.Contains(verb, "Unstructured") {
						return err
					}
					return nil
				})
				f.Lead()
				f.Pass()
				assert.Equal(f, "True AsRecommended checkout", f.Reports("checkout"))
			})
		})
	}
}

// An API server before 1.33 has no tolerance: it drops the field.
func TestDroppedFieldIsNoDrift(t *testing.T) {
	subject.Play(t, []client.Object{subject.Checkout()}, func(f *keeptest.Fixture) {
		f.FailRequests(func(verb string, o client.Object) error {
			if verb == "create" || verb == "patch" {
				specOf(o).Behavior.ScaleUp.Tolerance = nil
			}
			return nil
		})
		f.Lead()
		f.Pass()
		f.Pass()
		assert.Equal(f, []string{"create checkout"}, f.Wrote())
		assert.Equal(f, "True AsRecommended checkout", f.Reports("checkout"))
		assert.Contains(f, f.Message("checkout"), "without tolerance")

		f.Lead() // which tries once more
		f.Pass()
		assert.Equal(f, []string{"patch checkout"}, f.Wrote())
		assert.Equal(f, "True AsRecommended checkout", f.Reports("checkout"))
		assert.Empty(f, f.Sent(), "nothing has changed")
	})
}

func TestMessagesOfTheHPA(t *testing.T) {
	subject.Play(t, []client.Object{subject.Checkout()}, func(f *keeptest.Fixture) {
		f.Lead()
		f.Pass()
		assert.Equal(f, "HorizontalPodAutoscaler checkout is as recommended", f.Message("checkout"))
		require.NoError(f, f.Client.Create(f.Context(), foreign("by-hand", "checkout")))
		f.Pass()
		assert.Equal(f, "HorizontalPodAutoscaler by-hand scales Deployment checkout too: autoscalers that share pods do not scale; "+
			"remove that one, or spec.autoscaler", f.Message("checkout"))
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.DryRun = true })
		f.Pass()
		assert.Equal(f, "spec.dryRun is true: HorizontalPodAutoscaler checkout is left as it is; it reads no forecast, and keeps the "+
			"replicas within its bounds", f.Message("checkout"))
	})
}

package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/owned"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

func TestCreatesAndCorrects(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.lead()
		f.pass()
		assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
		assert.Equal(f, []string{"Normal AutoscalerCreated"}, f.sent())
		assert.Equal(f, []string{"create checkout"}, f.wrote())
		hpa := f.hpa("checkout")
		owner := metav1.GetControllerOf(hpa)
		require.NotNil(f, owner)
		assert.Equal(f, types.UID("uid-1"), owner.UID)
		assert.Nil(f, owner.BlockOwnerDeletion, "it takes a right that Foresail does not have")

		f.pass()
		f.lead()
		f.pass()
		assert.Empty(f, f.sent(), "nothing is left to do, for the next leader either")

		hpa = f.hpa("checkout")
		hpa.Spec.MaxReplicas, hpa.Annotations = 7, map[string]string{"of": "somebody else"}
		hpa.Status.CurrentReplicas = 3
		require.NoError(f, f.client.Update(f.ctx, hpa))
		f.wrote()
		f.pass()
		hpa = f.hpa("checkout")
		assert.EqualValues(f, 20, hpa.Spec.MaxReplicas)
		assert.Equal(f, map[string]string{"of": "somebody else"}, hpa.Annotations)
		assert.Equal(f, []string{"patch checkout"}, f.wrote())
		assert.Equal(f, []string{"Normal AutoscalerCorrected"}, f.sent())

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.MaxReplicas = new(int32(30)) })
		f.pass()
		assert.EqualValues(f, 30, f.hpa("checkout").Spec.MaxReplicas)

		require.NoError(f, f.client.Delete(f.ctx, f.hpa("checkout")))
		f.pass()
		assert.NotNil(f, f.hpa("checkout"), "whoever does not want it takes spec.autoscaler away")
	})
}

// The HPA itself holds the bounds of a schedule, also while there is no forecast; it has the widest ones at no time.
func TestTheHPAHasTheBoundsThatHold(t *testing.T) {
	pm := checkout()
	pm.Spec.Schedules = scheduled()
	play(t, []client.Object{pm}, func(f *fixture) {
		has := func(fewest, most int32, why string) {
			f.Helper()
			f.pass()
			hpa := f.hpa("checkout")
			require.NotNil(f, hpa)
			assert.Equal(f, []int32{fewest, most}, []int32{*hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas}, why)
			assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
		}
		f.lead()
		f.pass()
		assert.Nil(f, f.hpa("checkout"), "its bounds are not known yet")
		assert.Equal(f, "Unknown Pending", f.condition("checkout"))

		f.bound(&pipeline.Bounds{Min: 4, Max: 20})
		has(4, 20, "no window")
		f.bound(&pipeline.Bounds{Min: 30, Max: 100})
		has(30, 100, "ahead of a window")
		assert.Equal(f, []string{"Normal AutoscalerCreated", "Normal AutoscalerCorrected"}, f.sent())

		f.bound(nil)
		f.lead()
		f.wrote()
		has(30, 100, "the next leader does not know them yet")
		assert.Empty(f, f.wrote())
		f.bound(&pipeline.Bounds{Min: 2, Max: 10})
		has(2, 10, "another window")

		f.bound(nil)
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Schedules = nil })
		has(4, 20, "no schedules")
	})
}

func TestWithoutTheFieldNothingIsRead(t *testing.T) {
	pm := checkout()
	pm.Spec.Autoscaler, pm.Spec.MaxReplicas = nil, nil
	play(t, []client.Object{pm, foreign("checkout", "checkout")}, func(f *fixture) {
		f.fail(func(verb string, _ client.Object) error {
			assert.Equal(f, "list *v1alpha1.PredictedMetricList", verb)
			return nil
		})
		f.lead()
		f.pass()
		assert.Equal(f, "none", f.condition("checkout"))
	})
}

func TestRemovesWithTheField(t *testing.T) {
	play(t, []client.Object{checkout(), foreign("other", "other")}, func(f *fixture) {
		f.lead()
		f.pass()
		uid, version := f.hpa("checkout").UID, f.hpa("checkout").ResourceVersion
		f.sent()
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Autoscaler = nil })
		f.pass()
		assert.Nil(f, f.hpa("checkout"))
		assert.NotNil(f, f.hpa("other"))
		assert.Equal(f, "none", f.condition("checkout"))
		assert.Equal(f, []string{"Normal AutoscalerDeleted"}, f.sent())
		require.Len(f, f.deleted, 1)
		assert.Equal(f, uid, *f.deleted[0].UID)
		assert.Equal(f, version, *f.deleted[0].ResourceVersion)

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Autoscaler = &v1alpha1.Autoscaler{} })
		f.pass()
		assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
	})
}

// TestHPAsOfOthersAreNeverTouched has HPAs of the very name, and on the very target, be somebody else's.
func TestHPAsOfOthersAreNeverTouched(t *testing.T) {
	orphan := foreign("checkout", "elsewhere")
	orphan.OwnerReferences = []metav1.OwnerReference{owned.Reference(identified(metric("checkout", "checkout"), "uid-0", 0))}
	impostor := foreign("checkout", "elsewhere")
	impostor.OwnerReferences = []metav1.OwnerReference{{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: "x", UID: "uid-1", Controller: new(true)}}
	for name, c := range map[string]struct {
		hpa  *autoscalingv2.HorizontalPodAutoscaler
		want string
	}{
		"name":                           {foreign("checkout", "elsewhere"), "False NameTaken"},
		"target":                         {foreign("by-hand", "checkout"), "False TargetHasAnotherAutoscaler"},
		"both":                           {foreign("checkout", "checkout"), "False TargetHasAnotherAutoscaler"},
		"of a PredictedMetric that went": {orphan, "False NameTaken"},
		"owned by another kind":          {impostor, "False NameTaken"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []client.Object{checkout(), c.hpa}, func(f *fixture) {
				before := f.hpa(c.hpa.Name)
				f.lead()
				f.pass()
				assert.Equal(f, c.want, f.condition("checkout"))
				assert.Contains(f, f.message("checkout"), c.hpa.Name)
				assert.Equal(f, []string{"Warning " + strings.Fields(c.want)[1]}, f.sent())
				f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Autoscaler = nil })
				f.pass()
				assert.Equal(f, "none", f.condition("checkout"))
				assert.Empty(f, f.wrote())
				assert.Equal(f, before, f.hpa(c.hpa.Name))

				f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Autoscaler = &v1alpha1.Autoscaler{} })
				f.pass()
				require.NoError(f, f.client.Delete(f.ctx, before))
				time.Sleep(owned.RetryPeriod)
				f.pass()
				assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"), "the way is free")
			})
		})
	}
}

// A user who takes the owner away has the HPA from then on.
func TestReleasedHPAsAreNeverTouched(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.lead()
		f.pass()
		hpa := f.hpa("checkout")
		hpa.OwnerReferences, hpa.Spec.MaxReplicas = nil, 5
		require.NoError(f, f.client.Update(f.ctx, hpa))
		f.wrote()
		f.pass()
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Autoscaler = nil })
		f.pass()
		assert.Empty(f, f.wrote())
		assert.EqualValues(f, 5, f.hpa("checkout").Spec.MaxReplicas)
	})
}

// The owner may change between a read and the write that follows: the write fails then.
func TestWritesAreOfWhatWasRead(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.PredictedMetric)
		want   string
	}{
		"patch":  {func(pm *v1alpha1.PredictedMetric) { pm.Spec.MaxReplicas = new(int32(30)) }, "False TargetHasAnotherAutoscaler"},
		"delete": {func(pm *v1alpha1.PredictedMetric) { pm.Spec.Autoscaler = nil }, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []client.Object{checkout()}, func(f *fixture) {
				f.lead()
				f.pass()
				f.wrote()
				f.fail(func(verb string, _ client.Object) error {
					if verb == name {
						f.fail(nil)
						hpa := f.hpa("checkout")
						hpa.OwnerReferences = nil
						require.NoError(f, f.client.Update(f.ctx, hpa))
					}
					return nil
				})
				f.change("checkout", c.change)
				f.pass()
				assert.Equal(f, []string{name + " checkout"}, f.wrote(), "it was tried once")
				require.NotNil(f, f.hpa("checkout"))
				assert.EqualValues(f, 20, f.hpa("checkout").Spec.MaxReplicas)
				assert.Equal(f, c.want, f.condition("checkout"))
			})
		})
	}
}

func TestScaledObjectsHaveTheirTargets(t *testing.T) {
	play(t, []client.Object{checkout(), newScaledObject("checkout-keda", "checkout")}, func(f *fixture) {
		f.lead()
		f.pass()
		assert.Equal(f, "False TargetHasAnotherAutoscaler", f.condition("checkout"))
		assert.Contains(f, f.message("checkout"), "ScaledObject checkout-keda scales Deployment checkout too")
		require.NoError(f, f.client.Delete(f.ctx, newScaledObject("checkout-keda", "checkout")))
		time.Sleep(scaledObjectPeriod)
		f.pass()
		assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
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
			play(t, []client.Object{checkout()}, func(f *fixture) {
				f.fail(func(verb string, _ client.Object) error {
					if strings.Contains(verb, "Unstructured") {
						return err
					}
					return nil
				})
				f.lead()
				f.pass()
				assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
			})
		})
	}
}

// Two HPAs of one set of pods do not scale, but deleting one would leave the pods to bounds that somebody may have written by
// mistake. So the user decides.
func TestLaterRivalIsReported(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.lead()
		f.pass()
		rival := foreign("by-hand", "checkout")
		require.NoError(f, f.client.Create(f.ctx, rival))
		f.wrote()
		f.pass()
		assert.Equal(f, "False TargetHasAnotherAutoscaler checkout", f.condition("checkout"))
		assert.Contains(f, f.message("checkout"), "HorizontalPodAutoscaler by-hand scales Deployment checkout too")
		assert.NotNil(f, f.hpa("checkout"))
		assert.Empty(f, f.wrote())
		require.NoError(f, f.client.Delete(f.ctx, rival))
		f.pass()
		assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
	})
}

func TestOlderOfTwoGetsTheTarget(t *testing.T) {
	younger := identified(metric("checkout-heap", "checkout"), "uid-2", time.Minute)
	play(t, []client.Object{checkout(), younger}, func(f *fixture) {
		f.lead()
		f.pass()
		assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
		assert.Equal(f, "False TargetHasAnotherAutoscaler", f.condition("checkout-heap"))
		assert.Equal(f, []string{"create checkout"}, f.wrote())

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Autoscaler = nil })
		f.pass()
		assert.Equal(f, "True AsRecommended checkout-heap", f.condition("checkout-heap"))
		f.wrote()
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Autoscaler = &v1alpha1.Autoscaler{} })
		f.pass()
		assert.Equal(f, "False TargetHasAnotherAutoscaler", f.condition("checkout"), "the younger has it by now")
		assert.Equal(f, "True AsRecommended checkout-heap", f.condition("checkout-heap"))
		assert.Empty(f, f.wrote())
	})
}

func TestAnotherTarget(t *testing.T) {
	play(t, []client.Object{checkout(), foreign("by-hand", "taken")}, func(f *fixture) {
		f.lead()
		f.pass()
		to := func(target string) {
			f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.ScaleTargetRef.Name = target })
			f.pass()
		}
		to("free")
		assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
		assert.Equal(f, "free", f.hpa("checkout").Spec.ScaleTargetRef.Name)
		to("taken")
		assert.Equal(f, "False TargetHasAnotherAutoscaler", f.condition("checkout"))
		assert.Nil(f, f.hpa("checkout"), "it would scale free by the load of taken")
		to("checkout")
		assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
	})
}

// TestKilledBetweenAnyTwoSteps has a new leader continue after each request of the one before.
func TestKilledBetweenAnyTwoSteps(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		for round := range 3 {
			f.lead()
			f.writeStatus() // Pending
			f.lead()
			time.Sleep(2 * checkPeriod) // it begins to watch, and acts
			synctest.Wait()
			if round == 0 {
				require.NotNil(f, f.hpa("checkout"))
				assert.Equal(f, "Unknown Pending", f.condition("checkout"), "killed before the status says so")
			}
			if round < 2 {
				f.lead()
				f.pass()
				assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
			} // else it is to go before the status has it
			f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Autoscaler = nil })
			f.lead()
			time.Sleep(2 * checkPeriod) // it begins to watch, and acts
			synctest.Wait()
			require.Nil(f, f.hpa("checkout"))
			assert.NotEqual(f, "none", f.condition("checkout"), "killed before the status says so")
			f.lead()
			f.pass()
			assert.Equal(f, "none", f.condition("checkout"))
			f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Autoscaler = &v1alpha1.Autoscaler{} })
		}
		creations := slices.DeleteFunc(f.wrote(), func(w string) bool { return !strings.HasPrefix(w, "create") })
		assert.Len(f, creations, 3)
	})
}

func TestRequestsThatFail(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil // they wait until virtual time has reached the real one
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	hpas := schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}
	invalid := apierrors.NewInvalid(hpaKind.GroupKind(), "checkout", nil)
	invalid.ErrStatus.Message = "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"
	for name, c := range map[string]struct {
		verb string
		err  error
		want string
	}{
		"no right to create":      {"create", apierrors.NewForbidden(hpas, "checkout", errors.New("not granted")), "False Forbidden"},
		"no right to list":        {"list *v2.HorizontalPodAutoscalerList", apierrors.NewForbidden(hpas, "", errors.New("not granted")), "False Forbidden"},
		"without HPAScaleToZero":  {"create", invalid, "False RejectedByAPIServer"},
		"an API server that ends": {"create", apierrors.NewInternalError(errors.New("shutting down")), "Unknown Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []client.Object{checkout()}, func(f *fixture) {
				var tries atomic.Int32
				f.fail(func(verb string, _ client.Object) error {
					if verb == c.verb {
						tries.Add(1)
						return c.err
					}
					return nil
				})
				f.lead()
				for range 5 {
					f.pass()
				}
				assert.Equal(f, c.want, f.condition("checkout"))
				if c.want != "Unknown Pending" {
					assert.Contains(f, f.message("checkout"), c.err.Error(), "the words of the API server")
					assert.Equal(f, []string{"Warning " + strings.Fields(c.want)[1]}, f.sent())
					assert.Less(f, tries.Load(), int32(8))
				}
				f.fail(nil)
				time.Sleep(2 * time.Minute)
				f.pass()
				assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
			})
		})
	}
}

func TestHPAThatMayNotBeDeleted(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.lead()
		f.pass()
		f.fail(func(verb string, o client.Object) error {
			if verb == "delete" {
				return apierrors.NewForbidden(schema.GroupResource{}, o.GetName(), errors.New("not granted"))
			}
			return nil
		})
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Autoscaler = nil })
		f.pass()
		assert.Equal(f, "False Forbidden checkout", f.condition("checkout"))
		f.fail(nil)
		time.Sleep(owned.RetryPeriod)
		f.pass()
		assert.Equal(f, "none", f.condition("checkout"))
	})
}

// An API server before 1.33 has no tolerance: it drops the field.
func TestDroppedFieldIsNoDrift(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.fail(func(verb string, o client.Object) error {
			if hpa, ok := o.(*autoscalingv2.HorizontalPodAutoscaler); ok && verb == "create" {
				hpa.Spec.Behavior.ScaleUp.Tolerance = nil
			}
			return nil
		})
		f.lead()
		f.pass()
		f.pass()
		assert.Equal(f, []string{"create checkout"}, f.wrote())
		assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
		assert.Contains(f, f.message("checkout"), "without tolerance")
	})
}

// With --namespaces nothing is read in any other.
func TestNamespacesAreReadAlone(t *testing.T) {
	play(t, []client.Object{checkout(), foreign("by-hand", "checkout")}, func(f *fixture) {
		f.lead()
		f.stop()
		f.running.Wait()
		r := newRivals(f.client, []string{"shop", "office"}, time.Now)
		ctx, cancel := context.WithCancel(f.ctx)
		pm := checkout()
		metrics := map[types.UID]*v1alpha1.PredictedMetric{pm.UID: pm}
		o, err := r.observe(ctx, metrics)
		require.NoError(f, err)
		require.Nil(f, o, "not listed yet")
		synctest.Wait()
		o, err = r.observe(ctx, metrics)
		require.NoError(f, err)
		assert.Len(f, o.hpas, 1)
		assert.Len(f, r.tables, 2)
		assert.NotEmpty(f, o.rivalOf(pm, false))
		cancel()
		r.wait()
	})
}

// One namespace gets its share of the requests of a check, so that another waits for no more than these.
func TestRequestsOfANamespaceAreBounded(t *testing.T) {
	var objects []client.Object
	for i := range 3 * owned.TurnsPerCheck {
		name := fmt.Sprintf("m-%d", i)
		objects = append(objects, identified(metric(name, name), types.UID(name), time.Hour))
	}
	other := identified(metric("other", "other"), "other", time.Hour)
	other.Namespace = "office"
	play(t, append(objects, other), func(f *fixture) {
		f.lead()
		f.writeStatus() // Pending
		time.Sleep(2 * checkPeriod)
		synctest.Wait()
		wrote := f.wrote()
		assert.Len(f, wrote, owned.TurnsPerCheck+1)
		assert.Contains(f, wrote, "create other")
		for range 2 {
			time.Sleep(checkPeriod)
			synctest.Wait()
		}
		assert.Len(f, f.wrote(), 2*owned.TurnsPerCheck)
	})
}

func setDryRun(to bool) func(*v1alpha1.PredictedMetric) {
	return func(pm *v1alpha1.PredictedMetric) { pm.Spec.DryRun = to }
}

// In dry run no HPA is created, and the one of before is left alone, whatever changes. The field that asks for it still removes it.
func TestDryRunLeavesTheHPAAlone(t *testing.T) {
	pm := checkout()
	pm.Spec.DryRun = true
	play(t, []client.Object{pm}, func(f *fixture) {
		f.lead()
		f.pass()
		assert.Equal(f, "False DryRun", f.condition("checkout"))
		assert.Equal(f, "spec.dryRun is true: no HorizontalPodAutoscaler is created", f.message("checkout"))
		assert.Equal(f, []string{"Normal DryRun"}, f.sent())
		f.lead()
		f.pass()
		assert.Nil(f, f.hpa("checkout"))
		assert.Empty(f, f.sent(), "the next leader has nothing new")

		f.change("checkout", setDryRun(false))
		f.pass()
		assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))
		assert.Equal(f, []string{"create checkout"}, f.wrote())
		f.sent()

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.DryRun, pm.Spec.MaxReplicas = true, new(int32(30)) })
		hpa := f.hpa("checkout")
		hpa.Spec.MaxReplicas = 7
		require.NoError(f, f.client.Update(f.ctx, hpa))
		f.wrote()
		f.pass()
		assert.Equal(f, "False DryRun checkout", f.condition("checkout"))
		assert.Contains(f, f.message("checkout"), "HorizontalPodAutoscaler checkout is left as it is")
		assert.EqualValues(f, 7, f.hpa("checkout").Spec.MaxReplicas)
		assert.Empty(f, f.wrote())
		assert.Equal(f, []string{"Normal DryRun"}, f.sent())

		f.change("checkout", setDryRun(false))
		f.pass()
		assert.EqualValues(f, 30, f.hpa("checkout").Spec.MaxReplicas, "it is corrected again")

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.DryRun, pm.Spec.Autoscaler = true, nil })
		f.pass()
		assert.Nil(f, f.hpa("checkout"))
		assert.Equal(f, "none", f.condition("checkout"))
	})
}

// A trial does not keep another PredictedMetric of the target from having its HPA, unless it still has one itself.
func TestDryRunIsNoRival(t *testing.T) {
	trial := identified(metric("trial", "checkout"), "uid-0", 2*time.Hour)
	trial.Spec.DryRun = true
	play(t, []client.Object{trial, checkout()}, func(f *fixture) {
		f.lead()
		f.pass()
		assert.Equal(f, "False DryRun", f.condition("trial"))
		assert.Equal(f, "True AsRecommended checkout", f.condition("checkout"))

		f.change("trial", setDryRun(false))
		f.pass()
		assert.Equal(f, "False TargetHasAnotherAutoscaler", f.condition("trial"))
	})
}

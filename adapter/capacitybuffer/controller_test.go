package capacitybuffer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/owned"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

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

package capacitybuffer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/adapter/keep/keeptest"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/objectcache"
	"github.com/foresail/foresail/pipeline"
)

var subject = keeptest.Subject{
	New: func(run func(func(context.Context)), o keep.Options) keep.Runner {
		nodes := objectcache.Nodes(kubefake.NewClientset())
		run(nodes.Run)
		return New(o, &Nodes{Feed: nodes, Waits: func() []podtracker.Wait { return nil }, Now: time.Now})
	},
	AddToScheme: func(scheme *runtime.Scheme) error {
		for _, version := range versions {
			scheme.AddKnownTypeWithName(kindOf(version), &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(newList(version).GroupVersionKind(), &unstructured.UnstructuredList{})
		}
		return nil
	},
	Served: map[string][]string{group + "/v1": {"provisioningrequests"}, group +
		"/v1beta1": {"provisioningrequests", resource}},
	Forecast: forecast(8, 14),
	Request: func(s *v1alpha1.PredictedMetricSpec, wanted bool) {
		s.CapacityBuffer = nil
		if wanted {
			s.CapacityBuffer = &v1alpha1.CapacityBuffer{}
		}
	},
	Owned: func(s v1alpha1.PredictedMetricStatus) string {
		if s.CapacityBuffer == nil {
			return ""
		}
		return s.CapacityBuffer.Name
	},
	Condition: v1alpha1.ConditionCapacityBufferReady, Contested: reasonContested,
	Kept:    []string{"Unknown " + reasonUnclaimed, "False " + reasonUnactedOn},
	Empty:   func() client.Object { return newBuffer("v1beta1") },
	Foreign: foreign,
	Spec:    func(o client.Object) any { return specIn(o) },
	Target:  func(o client.Object) string { return targetOf(o).Name },
	Drift: func(o client.Object) {
		spec := specIn(o)
		spec["percentage"] = int64(50)
		setSpec(o, spec)
	},
	Grow: func(f *keeptest.Fixture, name string) {
		f.Forecasts(name, func(s *snapshot.Snapshot) { *s = forecast(8, 16) })
	},
	List: "*unstructured.UnstructuredList", DrainTime: emptyPeriod + keep.CheckPeriod,
}

func TestLifecycle(t *testing.T) { keeptest.Lifecycle(t, subject) }

func TestOwnership(t *testing.T) { keeptest.Ownership(t, subject) }

func TestRequests(t *testing.T) { keeptest.Requests(t, subject) }

// forecast desires pods now, and when a node has started.
func forecast(now, then int) snapshot.Snapshot {
	return snapshot.Snapshot{
		StaleAfter: time.Minute, Combined: snapshot.Combined{Desired: now, Metrics: 1},
		Forecast: pipeline.Forecast{
			Target: now, Horizon: 40 * time.Second, Window: 5 * time.Minute, Decision: pipeline.Decision{Desired: now},
			NodeForecast: pipeline.NodeForecast{Horizon: 160 * time.Second, Desired: then,
				WindowNeeded: 128 * time.Second},
		},
	}
}

// foreign returns a buffer that a user has made.
func foreign(name, target string) client.Object {
	o := newBuffer("v1beta1")
	setSpec(o, map[string]any{
		"scalableRef": map[string]any{"apiGroup": "apps", "kind": "Deployment", "name": target}, "replicas": int64(2),
	})
	o.SetNamespace("shop")
	o.SetName(name)
	o.SetUID(types.UID("of-" + name))
	return o
}

// fixture plays the node autoscaler too.
type fixture struct{ *keeptest.Fixture }

func play(t *testing.T, pm *v1alpha1.PredictedMetric, test func(fixture)) {
	t.Helper()
	subject.Play(t, []client.Object{pm}, func(f *keeptest.Fixture) { test(fixture{f}) })
}

func (f fixture) keeper() *Keeper { return f.Keeper.(*Keeper) }

func (f fixture) expect(now, then int) {
	f.Forecasts("checkout", func(s *snapshot.Snapshot) { *s = forecast(now, then) })
}

// bound has bounds hold with schedules from now on.
func (f fixture) bound(b *pipeline.Bounds) {
	f.Forecasts("checkout", func(s *snapshot.Snapshot) { s.Bounds = b })
}

// lose has no forecast from now on.
func (f fixture) lose(reason string) {
	f.Forecasts("checkout", func(s *snapshot.Snapshot) {
		s.Err = &snapshot.Unavailable{Reason: snapshot.Stale, Message: reason}
	})
}

// setConditions does what a node autoscaler does.
func (f fixture) setConditions(conditions ...any) {
	f.Helper()
	f.Edit("checkout", func(o client.Object) {
		require.NoError(f, unstructured.SetNestedSlice(content(o), conditions, "status", "conditions"))
	})
}

func (f fixture) autoscale(resolved, provisioning metav1.ConditionStatus) {
	f.Helper()
	of := func(name string, status metav1.ConditionStatus) map[string]any {
		return map[string]any{
			"type": name, "status": string(status), "reason": "OfTheAutoscaler", "message": "its own words",
			"lastTransitionTime": "2030-01-01T00:00:00Z",
		}
	}
	f.setConditions(of(conditionResolved, resolved), of(conditionProvisioning, provisioning))
}

// size returns the size of the buffer, -1 without one.
func (f fixture) size() int {
	f.Helper()
	b := f.Find("checkout")
	if b == nil {
		return -1
	}
	n, ok := replicasIn(specIn(b))
	require.True(f, ok)
	return n
}

// resize changes the size as a user does.
func (f fixture) resize(replicas int64) {
	f.Helper()
	f.Edit("checkout", func(o client.Object) {
		require.NoError(f, unstructured.SetNestedField(content(o), replicas, "spec", "replicas"))
	})
}

// wrote returns the writes since the last call, with the sizes.
func (f fixture) wrote() (out []string) {
	for _, w := range f.Writes() {
		n, _ := replicasIn(specIn(w.Object))
		out = append(out, fmt.Sprintf("%s %s %d", w.Verb, w.Object.GetName(), n))
	}
	return out
}

func TestCreatesAndSizes(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.expect(8, 11)
		f.Lead()
		f.Pass()
		assert.Equal(f, "Unknown WaitingForNodeAutoscaler checkout", f.Reports("checkout"))
		assert.Equal(f, []string{"Normal CapacityBufferCreated"}, f.Sent())
		assert.Equal(f, []string{"create checkout 3"}, f.wrote())
		b := f.Find("checkout")
		assert.Equal(f, map[string]any{
			"scalableRef": map[string]any{"apiGroup": "apps", "kind": "Deployment", "name": "checkout"},
			"replicas":    int64(3), "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
		}, specIn(b))
		assert.Equal(f, managedBy, b.GetLabels()[labelManagedBy])

		f.autoscale(metav1.ConditionTrue, metav1.ConditionTrue)
		f.Pass()
		assert.Equal(f, "True SizedByForecast checkout", f.Reports("checkout"))
		assert.Contains(f, f.Message("checkout"),
			"3 spare pods: 11 pods are desired in 2m40s, 8 now; a node takes 2m0s to start (assumed")
		assert.Contains(f, f.Message("checkout"), "Provisioning is True (OfTheAutoscaler)")
		assert.Equal(f, &v1alpha1.CapacityBufferStatus{
			Name: "checkout", Replicas: new(int32(3)), DesiredReplicas: new(int32(11)),
			NodeStartupTime: &metav1.Duration{Duration: assumedStartup}, NodesMeasured: new(int32(0)),
		}, f.Metric("checkout").Status.CapacityBuffer)
		assert.Empty(f, f.wrote(), "nothing is written while the size is the same")

		f.expect(8, 14)
		f.Check()
		assert.Equal(f, []string{"patch checkout 6"}, f.wrote(), "it grows at once")
		f.expect(14, 14)
		f.PassFor(shrinkPeriod + keep.CheckPeriod)
		assert.Equal(f, 0, f.size(), "the pods have come")
		assert.Empty(f, f.Sent(), "a size is no event")
	})
}

func TestShrinksOnceItHasNotBeenNeededForAWhile(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.expect(8, 14)
		f.Lead()
		f.Pass()
		f.expect(8, 8)
		f.PassFor(defaultHold - 4*time.Second)
		assert.Equal(f, 6, f.size())
		assert.Contains(f, f.Message("checkout"), "0 would do, the others were needed a short time ago")
		f.PassFor(10 * time.Second)
		assert.Equal(f, 0, f.size())
		assert.Equal(f, []string{"create checkout 6", "patch checkout 0"}, f.wrote())

		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) {
			s.CapacityBuffer = &v1alpha1.CapacityBuffer{NodeStartupTime: &metav1.Duration{Duration: 8 * time.Minute}}
		})
		f.expect(8, 12)
		f.Pass()
		f.expect(8, 8)
		f.PassFor(8*time.Minute - 10*time.Second)
		assert.Equal(f, 4, f.size(), "a node that is let go costs its startup time again")
		assert.Contains(f, f.Message("checkout"), "a node takes 8m0s to start (as set)")
		f.PassFor(20 * time.Second)
		assert.Equal(f, 0, f.size())
	})
}

// While pods come one after the other, not each of them is a write.
func TestWritesAreFew(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.expect(8, 18)
		f.Lead()
		f.Pass()
		for now := 8; now <= 18; now++ {
			f.expect(now, 18)
			f.PassFor(2 * keep.CheckPeriod)
		}
		f.PassFor(shrinkPeriod)
		assert.Equal(f, 0, f.size())
		assert.LessOrEqual(f, len(f.wrote()), 7)
	})
}

func TestNextLeaderHoldsTheSize(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.expect(8, 14)
		f.Lead()
		f.Pass()
		f.expect(8, 8)
		f.Lead()
		f.PassFor(defaultHold - 4*time.Second)
		assert.Equal(f, 6, f.size())
		f.PassFor(10 * time.Second)
		assert.Equal(f, 0, f.size())
	})
}

func TestWithoutAForecastTheSizeStays(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.expect(8, 14)
		f.lose("the newest sample is 40s old")
		f.Lead()
		f.Pass()
		assert.Equal(f, "Unknown NoForecast", f.Reports("checkout"))
		assert.Contains(f, f.Message("checkout"), "the newest sample is 40s old")
		assert.Equal(f, -1, f.size(), "unknown is not zero")

		f.expect(8, 14)
		f.Pass()
		f.autoscale(metav1.ConditionTrue, metav1.ConditionTrue)
		f.lose("the newest sample is 50s old")
		f.PassFor(6 * time.Minute)
		assert.Equal(f, 6, f.size())
		assert.Equal(f, "Unknown NoForecast checkout", f.Reports("checkout"))
		f.expect(8, 8)
		f.PassFor(4 * time.Minute)
		assert.Equal(f, 6, f.size(), "an unknown need is not a smaller one")
		f.PassFor(2 * time.Minute)
		assert.Equal(f, 0, f.size())
	})
}

// Bounds and ownership need no forecast.
func TestWithoutAForecastTheSizeIsBounded(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.expect(8, 14)
		f.Lead()
		f.Pass()
		require.Equal(f, 6, f.size())
		f.lose("the newest sample is 50s old")
		f.resize(1000)
		f.Pass()
		assert.Equal(f, 6, f.size(), "another's change is undone")
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.CapacityBuffer.MaxReplicas = new(int32(2)) })
		f.Pass()
		assert.Equal(f, 2, f.size())
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.ScaleTargetRef.Name = "another" })
		f.Pass()
		assert.Equal(f, 0, f.size(), "it was that of another target")
	})
}

// A leader that finds an empty buffer does not know since when it is.
func TestAnotherLeaderKeepsAnEmptyBufferForAWhile(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.expect(8, 14)
		f.Lead()
		f.Pass()
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.CapacityBuffer = nil })
		f.PassFor(2 * keep.CheckPeriod)
		require.Equal(f, 0, f.size())
		f.Lead()
		f.PassFor(emptyPeriod - keep.CheckPeriod)
		assert.Equal(f, 0, f.size(), "it is still there")
		f.PassFor(5 * keep.CheckPeriod)
		assert.Equal(f, -1, f.size())
	})
}

func TestBoundsOfTheSize(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.expect(18, 40)
		f.Lead()
		f.Pass()
		assert.Equal(f, 2, f.size(), "no more than the target may have")
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) {
			s.MaxReplicas, s.CapacityBuffer.MaxReplicas, s.CapacityBuffer.MinReplicas = nil, new(int32(5)), new(int32(1))
		})
		f.Pass()
		assert.Equal(f, 5, f.size())
		assert.Contains(f, f.Message("checkout"), "and more are not allowed")
		f.expect(40, 40)
		f.PassFor(defaultHold + 10*time.Second)
		assert.Equal(f, 1, f.size())
	})
}

// Nodes are started ahead of a window by the time that they take, for as many pods as there may be in it.
func TestBoundsOfSchedules(t *testing.T) {
	pm := subject.Checkout()
	pm.Spec.Schedules = []v1alpha1.Schedule{{Name: "event", MinReplicas: new(int32(30)), MaxReplicas: new(int32(100))}}
	play(t, pm, func(f fixture) {
		f.expect(8, 30)
		f.bound(&pipeline.Bounds{Min: 1, Max: 20, NodeMin: 30, NodeMax: 100})
		f.Lead()
		f.Pass()
		assert.Equal(f, 22, f.size())
		f.expect(8, 30)
		f.bound(&pipeline.Bounds{Min: 1, Max: 20, NodeMin: 1, NodeMax: 20})
		f.Pass()
		assert.Equal(f, 12, f.size(), "no more than the target may have then")
	})
}

func TestVersions(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.expect(8, 14)
		f.Serve(group+"/v1beta1", "provisioningrequests")
		f.Lead()
		f.Pass()
		assert.Equal(f, "False NotServed", f.Reports("checkout"), "the group has other kinds")
		assert.Contains(f, f.Message("checkout"), "feature gate CapacityBuffer")
		assert.Equal(f, []string{"Warning NotServed"}, f.Sent())
		f.PassFor(time.Minute)
		assert.Empty(f, f.Sent())

		f.Serve(group+"/v1beta1", resource)
		f.PassFor(40 * time.Second)
		assert.Equal(f, 6, f.size())
		f.Serve(group+"/v1", "provisioningrequests", resource)
		f.Remove("checkout") // the fake client keeps each version by itself
		f.PassFor(6 * time.Minute)
		inV1 := newBuffer("v1")
		assert.NoError(f, f.Client.Get(f.Context(), client.ObjectKey{Namespace: "shop", Name: "checkout"}, inV1))

		f.Serve(group + "/v1")
		f.Serve(group + "/v1beta1")
		f.PassFor(6 * time.Minute)
		assert.Equal(f, "False NotServed", f.Reports("checkout"))
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.CapacityBuffer = nil })
		f.Pass()
		assert.Equal(f, "none", f.Reports("checkout"))
	})
}

func TestWhatTheNodeAutoscalerSays(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.expect(8, 14)
		f.Lead()
		f.PassFor(claimPeriod + 20*time.Second)
		assert.Equal(f, "False NoNodeAutoscaler checkout", f.Reports("checkout"))
		for _, c := range []struct {
			resolved, provisioning metav1.ConditionStatus
			want                   string
		}{
			{metav1.ConditionFalse, metav1.ConditionFalse, "False NotReadyForProvisioning checkout"},
			{metav1.ConditionTrue, metav1.ConditionFalse, "False NotProvisioned checkout"},
			{metav1.ConditionTrue, metav1.ConditionTrue, "True SizedByForecast checkout"},
		} {
			f.autoscale(c.resolved, c.provisioning)
			f.Pass()
			assert.Equal(f, c.want, f.Reports("checkout"))
			if c.provisioning == metav1.ConditionFalse {
				assert.Contains(f, f.Message("checkout"), "its own words")
			}
		}
		f.setConditions(map[string]any{
			"type": conditionProvisioning, "status": "False", "reason": reasonRequiresNew, "message": "",
			"lastTransitionTime": "2030-01-01T00:00:00Z",
		})
		f.Pass()
		assert.Equal(f, "True NodesStarting checkout", f.Reports("checkout"))

		f.expect(14, 14)
		f.autoscale(metav1.ConditionTrue, metav1.ConditionFalse)
		f.PassFor(shrinkPeriod + 4*time.Second)
		assert.Equal(f, "True SizedByForecast checkout", f.Reports("checkout"),
			"of no spare pod there is nothing to provision")
	})
}

func TestMetricsOfTheLeader(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.expect(8, 14)
		f.Lead()
		f.Pass()
		assert.NoError(f, testutil.CollectAndCompare(f.keeper(), strings.NewReader(`
# HELP foresail_capacity_buffer_replicas [ALPHA] Spare pods that the CapacityBuffer of a PredictedMetric asks for.
# TYPE foresail_capacity_buffer_replicas gauge
foresail_capacity_buffer_replicas{namespace="shop",predictedmetric="checkout"} 6
# HELP foresail_capacity_buffer_node_startup_time_seconds [ALPHA] Time from a pod that waits for a new node until it is scheduled, assumed or measured.
# TYPE foresail_capacity_buffer_node_startup_time_seconds gauge
foresail_capacity_buffer_node_startup_time_seconds 120
`)))
		f.Stop()
		assert.Zero(f, testutil.CollectAndCount(f.keeper()), "a process that does not lead knows nothing")
	})
}

// In dry run no buffer is created, and an existing one keeps its size, which is held when dry run ends.
func TestDryRunLeavesTheBufferAlone(t *testing.T) {
	pm := subject.Checkout()
	pm.Spec.DryRun = true
	play(t, pm, func(f fixture) {
		f.expect(8, 11)
		f.Lead()
		f.Pass()
		assert.Equal(f, "False DryRun", f.Reports("checkout"))
		assert.Equal(f, []string{"Normal DryRun"}, f.Sent())
		assert.Nil(f, f.Find("checkout"))

		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.DryRun = false })
		f.Pass()
		assert.Equal(f, []string{"create checkout 3"}, f.wrote())

		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.DryRun = true })
		f.Pass()
		f.expect(8, 8)
		f.PassFor(2 * defaultHold)
		f.resize(5)
		f.wrote()
		f.Pass()
		assert.Equal(f, "False DryRun checkout", f.Reports("checkout"))
		assert.Equal(f, new(int32(5)), f.Metric("checkout").Status.CapacityBuffer.Replicas, "as a user has set it")
		assert.Equal(f, 5, f.size())
		assert.Empty(f, f.wrote())

		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.DryRun = false })
		f.Pass()
		assert.Equal(f, 5, f.size(), "it shrinks no sooner than one that was just needed")
		f.PassFor(defaultHold + shrinkPeriod)
		assert.Equal(f, 0, f.size())

		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.DryRun, s.CapacityBuffer = true, nil })
		f.PassFor(2 * emptyPeriod)
		assert.Nil(f, f.Find("checkout"))
		assert.Equal(f, "none", f.Reports("checkout"))
	})
}

func TestAnEmptyBufferIsDeletedLater(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.Lead()
		f.Pass()
		f.wrote()
		f.Want("checkout", false)
		f.Pass()
		assert.Equal(f, "Unknown Removing checkout", f.Reports("checkout"))
		assert.Equal(f, "spec.capacityBuffer is absent: the CapacityBuffer is empty, and deleted within seconds",
			f.Message("checkout"))
		assert.Equal(f, &v1alpha1.CapacityBufferStatus{Name: "checkout", Replicas: new(int32(0))},
			f.Metric("checkout").Status.CapacityBuffer)
		assert.Zero(f, f.size(), "Karpenter 1.14 releases the nodes of an empty buffer, and not of a deleted one")
		f.PassFor(emptyPeriod)
		assert.Equal(f, []string{"patch checkout 0", "delete checkout 0"}, f.wrote())
	})
}

func TestTheBufferFollowsTheSpec(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.Lead()
		f.Pass()
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) {
			s.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "v1", Kind: "ReplicationController", Name: "old"}
		})
		f.expect(4, 5)
		f.Pass()
		assert.Equal(f, map[string]any{
			"scalableRef": map[string]any{"kind": "ReplicationController", "name": "old"},
			"replicas":    int64(1), "provisioningStrategy": provisioningStrategy,
		}, specIn(f.Find("checkout")), "the size that was held was for another target")
	})
}

func TestMessagesOfTheBuffer(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		require.NoError(f, f.Client.Create(f.Context(), foreign("by-hand", "checkout")))
		f.Lead()
		f.Pass()
		rival := "CapacityBuffer by-hand has spare pods of Deployment checkout too"
		assert.Equal(f, rival+": a second CapacityBuffer is not created", f.Message("checkout"))
		f.Remove("by-hand")
		f.Pass()
		require.NoError(f, f.Client.Create(f.Context(), foreign("by-hand", "checkout")))
		f.Pass()
		assert.Equal(f, rival+": the spare pods of both add up", f.Message("checkout"))
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.DryRun = true })
		f.Pass()
		assert.Equal(f, "spec.dryRun is true: CapacityBuffer checkout is left as it is, with its spare pods",
			f.Message("checkout"))
	})
}

func TestRightsThatAreMissingAreNamed(t *testing.T) {
	play(t, subject.Checkout(), func(f fixture) {
		f.FailRequests(func(verb string, _ client.Object) error {
			if verb == "create" {
				return apierrors.NewForbidden(buffers.Resource, "checkout", errors.New("not granted"))
			}
			return nil
		})
		f.Lead()
		f.Pass()
		assert.Contains(f, f.Message("checkout"), "not granted; manifests/components/capacity-buffer grants the rights")
	})
}

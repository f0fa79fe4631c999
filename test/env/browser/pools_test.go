//go:build long

package browser

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	poolcluster "github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/adapter/serving/servingtest"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/poolview"
	"github.com/foresail/foresail/nodepool/prices"
	"github.com/foresail/foresail/nodepool/state"
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(servingtest.Now.Add(-d)) }

// cluster is a cluster of 30 pools, of which workers has 300 nodes and something of everything.
func cluster(t *testing.T) *poolview.View {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(workers(t), metric(t, "shop", "checkout"),
		metric(t, "team-09", "service-0049"))
	for i := range 29 {
		objects.WithObjects(&v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("batch-%02d", i)},
			Spec: v1alpha1.WorkerPoolSpec{Min: 1, Max: 5}})
	}
	var all []runtime.Object
	for i := range 300 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i/100,
				i%100), CreationTimestamp: ago(time.Duration(i) * time.Hour),
			Labels: map[string]string{poolcluster.LabelPool: "workers",
				corev1.LabelTopologyZone:       "eu-west-1" + string(rune('a'+i%3)),
				corev1.LabelInstanceTypeStable: "m7g.large"},
		}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		all = append(all, node)
		for j := range 3 {
			all = append(all, podOf(fmt.Sprintf("web-%d-%d", i, j), node.Name))
		}
	}
	bare := podOf("bare", "ip-10-0-0-2.eu-west-1.compute.internal")
	bare.OwnerReferences = nil
	all = append(all, bare)
	for i := range 12 {
		pod := podOf(fmt.Sprintf("web-%d", i), "")
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, LastTransitionTime: ago(30 * time.Second)}}
		all = append(all, pod)
	}
	read := clientset.NewClientset(append(all, happened()...)...)
	read.PrependReactor("list", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() != "team-09" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("not yours"))
	})
	return &poolview.View{
		Objects: objects.Build(), Cluster: read, Prices: prices.Prices{"m7g.large": {OnDemand: new(0.0816),
			Spot: new(0.03)}},
		Now: func() time.Time { return servingtest.Now },
	}
}

// metric is the object of a PredictedMetric.
func metric(t *testing.T, namespace, name string) *v1alpha1.PredictedMetric {
	t.Helper()
	spec, err := params.ParseSpec([]byte("{threshold: 700m, minReplicas: 2, maxReplicas: 20, source: {pods: {metric: nodejs_eventloop_utilization, port: 9100}}}"))
	require.NoError(t, err)
	return &v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
}

// happened are Events about the pool workers, and more than are shown about the PredictedMetric checkout.
func happened() (all []runtime.Object) {
	about := func(kind, namespace, name string, since time.Duration, reason, message string) {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(namespace, metav1.NamespaceDefault),
			Name: fmt.Sprintf("%s.%d", name, len(all))}}
		e.InvolvedObject = corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind,
			Namespace: namespace, Name: name}
		e.EventTime, e.Type, e.Reason, e.Message = metav1.NewMicroTime(servingtest.Now.Add(-since)), corev1.EventTypeNormal, reason, message
		all = append(all, e)
	}
	about("WorkerPool", "", "workers", 20*time.Minute, "LaunchesFail", "no node joined in the last 3 scale-ups")
	all[0].(*corev1.Event).Type = corev1.EventTypeWarning
	about("WorkerPool", "", "workers", 40*time.Second, "LoadPredicted",
		"cpu will be 0.91 of a worker in 42s, above 0.70")
	for i := range 30 {
		about("PredictedMetric", "shop", "checkout", time.Duration(30-i)*time.Minute, "AboveThreshold",
			fmt.Sprintf("the load of a pod will be 0.8%d in 45s <b>&amp;", i))
	}
	return all
}

func podOf(name, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}}}
	pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
	return pod
}

func workers(t *testing.T) *v1alpha1.WorkerPool {
	t.Helper()
	journal, err := state.Encode(state.Record{
		Version: 1, Owner: "foresail-6c9f7d-x2x9p",
		Action: &state.Action{ID: "up-1", Kind: state.ActionUp,
			Message: "cpu will be 0.91 of a worker in 42s, above 0.70", Slots: []state.Slot{
				{Number: 1, Placement: fleet.Placement{Zone: "eu-west-1a", InstanceType: "m7g.large",
					Market: fleet.Spot},
					State: state.SlotFailed, Error: "InsufficientInstanceCapacity"},
				{Number: 2, Placement: fleet.Placement{Zone: "eu-west-1b", InstanceType: "m7g.large",
					Market: fleet.Spot},
					State: state.SlotLaunched, InstanceID: "i-0123456789abcdef0",
					Requested: servingtest.Now.Add(-20 * time.Second)},
				{Number: 3, Placement: fleet.Placement{Zone: "eu-west-1c", InstanceType: "m7g.large",
					Market: fleet.Spot},
					State: state.SlotReady, Node: "ip-10-0-0-0.eu-west-1.compute.internal",
					Requested: servingtest.Now.Add(-40 * time.Second)},
			}},
		Interruptions: []state.Removal{{InstanceID: "i-9", Node: "ip-10-0-0-1.eu-west-1.compute.internal",
			State: state.RemovalDraining, Since: servingtest.Now.Add(-time.Minute),
			Deadline: servingtest.Now.Add(time.Minute)}},
	})
	require.NoError(t, err)
	pool := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "workers", CreationTimestamp: ago(300 * time.Hour),
		Generation: 3}}
	pool.Spec = v1alpha1.WorkerPoolSpec{
		Min: 6, Max: 400, Signals: []v1alpha1.PoolSignal{{Name: "cpu", Threshold: resource.MustParse("700m")}},
		Provider: v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{Zones: []string{"eu-west-1a",
			"eu-west-1b", "eu-west-1c"}}},
	}
	last := ago(time.Minute)
	pool.Status = v1alpha1.WorkerPoolStatus{
		ObservedGeneration: 3, Workers: new(int32(302)), ReadyWorkers: new(int32(300)), Desired: new(int32(303)),
		PendingPods: new(int32(12)),
		StartupTime: &metav1.Duration{Duration: 42 * time.Second}, Rollout: &v1alpha1.PoolRollout{},
		Conditions: []metav1.Condition{{Type: "Healthy", Status: metav1.ConditionTrue, Reason: "Working",
			Message: "the last cycle did what it decided"}},
		Terminating: []string{"ip-10-0-0-1.eu-west-1.compute.internal"},
		Action: &v1alpha1.PoolAction{ID: "up-1", Kind: "ScaleUp", Started: ago(40 * time.Second),
			Progress: "1 Ready"},
		Signals: []v1alpha1.PoolSignalStatus{
			{Name: "cpu", Current: new(resource.MustParse("650m")), Predicted: new(resource.MustParse("910m")),
				Horizon: &metav1.Duration{Duration: 42 * time.Second}, Recommended: new(int32(303))},
			{Name: "queue", Error: "no series"},
		},
		Decisions: []v1alpha1.PoolDecision{
			{Time: ago(40 * time.Second), Step: "ScaleUp", Reason: "LoadPredicted",
				Message: "cpu will be 0.91 of a worker in 42s, above 0.70", Workers: 300, Desired: 303, Recommendations: []v1alpha1.PoolRecommendation{
					{Signal: "cpu", Workers: new(int32(303)), Reason: "0.91 in 42s"}, {Signal: "pending",
						Workers: new(int32(301)), Reason: "5 pods fit on no node <b>"}, {Signal: "minimum",
						Workers: new(int32(6))},
				}},
			{Time: ago(10 * time.Minute), Last: &last, Count: 37, Step: "Hold", Reason: "NothingToDo",
				Message: "there is as much as is needed", Workers: 300, Desired: 300},
		},
		Journal: &runtime.RawExtension{Raw: journal},
	}
	for i := range int32(7) { // what the chart begins with
		pool.Status.Decisions = append(pool.Status.Decisions, v1alpha1.PoolDecision{
			Time: ago(time.Duration(12+6*i) * time.Minute), Step: "ScaleUp", Reason: "LoadPredicted",
			Message: "cpu will be above 0.70", Workers: 300 - 20*(i+1), Desired: 300 - 20*i,
		})
	}
	return pool
}

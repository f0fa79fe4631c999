package poolview

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientset "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/prices"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func pool(name string) *v1alpha1.WorkerPool {
	p := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: name,
		CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	p.Spec.Min, p.Spec.Max = 1, 10
	p.Status.ReadyWorkers = new(int32(2))
	return p
}

func node(i int, pool string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("node-%04d", i), CreationTimestamp: metav1.NewTime(now.Add(-time.Minute)),
		Labels: map[string]string{cluster.LabelPool: pool, corev1.LabelInstanceTypeStable: "m5.large",
			"eks.amazonaws.com/capacityType": "SPOT"},
	}}
}

// view reads a cluster of some objects. The number of times that it lists nodes is counted.
func view(t *testing.T, pools []client.Object, objects ...runtime.Object) (v *View, listed *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	cluster := clientset.NewClientset(objects...)
	listed = new(0)
	cluster.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		*listed++
		return false, nil, nil
	})
	return &View{
		Objects: fake.NewClientBuilder().WithScheme(scheme).WithObjects(pools...).WithStatusSubresource().Build(),
		Cluster: cluster,
		Now:     func() time.Time { return now },
	}, listed
}

func TestListAndDetail(t *testing.T) {
	pending := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	pending.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		LastTransitionTime: metav1.NewTime(now.Add(-30 * time.Second)),
	}}
	v, _ := view(t, []client.Object{pool("workers"), pool("batch")}, node(1, "workers"),
		node(2, "workers"), node(3, "batch"), pending)
	v.Prices = prices.Prices{"m5.large": fleet.Price{Spot: new(0.04)}}

	all := v.List(t.Context())
	require.Empty(t, all.Problem)
	require.Len(t, all.Pools, 2)
	assert.Equal(t, "batch", all.Pools[0].Name)
	assert.Nil(t, all.Pools[0].Desired, "what is not known is not 0")
	assert.Equal(t, int32(2), *all.Pools[1].Ready)

	one := v.Detail(t.Context(), "workers")
	require.Empty(t, one.Problem)
	assert.Equal(t, 2, one.AllNodes)
	require.Len(t, one.Pool.Nodes, 2)
	assert.Equal(t, "node-0001", one.Pool.Nodes[0].Name)
	assert.Equal(t, "NotReady", one.Pool.Nodes[0].State)
	assert.Equal(t, fleet.Spot, one.Pool.Nodes[0].Market)
	assert.Equal(t, "1m", one.Pool.Nodes[0].Age)
	assert.Equal(t, "$0.08 an hour", one.Cost)
	assert.Equal(t, 1, *one.Pool.Unschedulable)
	require.Len(t, one.Pool.Pods, 1)
	assert.Equal(t, "shop/web", one.Pool.Pods[0].Name)
	assert.Equal(t, "30s", one.Pool.Pods[0].Age)

	assert.Equal(t, "WorkerPools cannot be read: there is no WorkerPool none", v.Detail(t.Context(), "none").Problem)
}

// The whole cluster is not listed each time that the page looks.
func TestTheClusterIsReadSometimes(t *testing.T) {
	v, listed := view(t, []client.Object{pool("workers"), pool("batch")}, node(1, "workers"))
	at := now
	slow := time.Duration(0)
	v.Now = func() time.Time {
		at = at.Add(slow)
		return at
	}
	for range 5 {
		require.Len(t, v.Detail(t.Context(), "workers").Pool.Nodes, 1)
		require.Empty(t, v.Detail(t.Context(), "batch").Pool.Nodes)
	}
	assert.Equal(t, 1, *listed)
	at = at.Add(clusterAge + time.Second)
	slow = time.Second // to read, and to look at nodes
	v.Detail(t.Context(), "workers")
	assert.Equal(t, 2, *listed)
	slow = 0
	at = at.Add(clusterAge + time.Second)
	v.Detail(t.Context(), "workers")
	assert.Equal(t, 2, *listed, "it takes long")
	at = at.Add(time.Minute)
	v.Detail(t.Context(), "workers")
	assert.Equal(t, 3, *listed)
}

func TestAnAbortedReadingIsForgotten(t *testing.T) {
	v, _ := view(t, []client.Object{pool("workers")}, node(1, "workers"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	seen, _ := v.look(ctx, pool("workers"))
	require.ErrorIs(t, seen.err, context.Canceled)
	assert.Len(t, v.Detail(t.Context(), "workers").Pool.Nodes, 1)
}

func TestAnswersAreBounded(t *testing.T) {
	var objects []runtime.Object
	for i := range maxNodes + 5 {
		n := node(i, "workers")
		n.Spec.Unschedulable = true
		objects = append(objects, n)
	}
	v, _ := view(t, []client.Object{pool("workers")}, objects...)
	one := v.Detail(t.Context(), "workers")
	assert.Len(t, one.Pool.Nodes, maxNodes)
	assert.Equal(t, maxNodes+5, one.AllNodes)
}

// failing is a client whose reads fail.
type failing struct {
	client.Reader
	err error
}

func (f failing) List(context.Context, client.ObjectList, ...client.ListOption) error { return f.err }

func (f failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

func TestProblemsAreSaid(t *testing.T) {
	resource := schema.GroupResource{Group: "foresail.dev", Resource: "workerpools"}
	for want, v := range map[string]*View{
		"You may not read WorkerPools, which requires the rights get and list of workerpools.foresail.dev": {Objects: failing{
			err: apierrors.NewForbidden(resource, "", errors.New("no"))}},
		"The cluster has no WorkerPools":            {Objects: failing{err: &meta.NoKindMatchError{}}},
		"WorkerPools cannot be read: no route":      {Objects: failing{err: errors.New("no route")}},
		"WorkerPools cannot be read: no kubeconfig": {Failure: errors.New("no kubeconfig")},
	} {
		v.Now = func() time.Time { return now }
		all, one := v.List(t.Context()), v.Detail(t.Context(), "workers")
		assert.Contains(t, all.Problem, want)
		assert.NotNil(t, all.Pools)
		assert.Equal(t, all.Problem, one.Problem)
		assert.Nil(t, one.Pool)
	}
}

// Who may read WorkerPools and not nodes sees what the WorkerPool says.
func TestNodesThatMayNotBeRead(t *testing.T) {
	v, _ := view(t, []client.Object{pool("workers")})
	v.Prices = prices.Prices{}
	cluster := clientset.NewClientset()
	cluster.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("pods is forbidden")
	})
	v.Cluster = cluster
	one := v.Detail(t.Context(), "workers")
	require.Empty(t, one.Problem)
	assert.Equal(t, "list pods: pods is forbidden", one.Pool.NodesError)
	assert.Nil(t, one.Pool.Unschedulable)
	assert.Empty(t, one.Cost)
}

// A chart has what was decided before the page was opened, and then what the page has seen.
func TestHistoryBeginsWithDecisions(t *testing.T) {
	decided := func(ago time.Duration, workers, desired int32) v1alpha1.PoolDecision {
		return v1alpha1.PoolDecision{Time: metav1.NewTime(now.Add(-ago)), Workers: workers, Desired: desired}
	}
	repeated := decided(30*time.Minute, 2, 2)
	repeated.Last = new(metav1.NewTime(now.Add(-10 * time.Minute)))
	workers := pool("workers")
	workers.Status.Workers, workers.Status.Desired = new(int32(3)), new(int32(4))
	workers.Status.Decisions = []v1alpha1.PoolDecision{decided(5*time.Minute, 2, 4), repeated, decided(2*time.Hour, 9, 9)}
	v, _ := view(t, []client.Object{workers})
	at := now
	v.Now = func() time.Time { return at }
	v.List(t.Context())
	at = at.Add(time.Second)
	v.Detail(t.Context(), "workers")
	at = at.Add(5 * time.Second)
	var ages []int64
	points := v.Detail(t.Context(), "workers").History
	for _, p := range points {
		ages = append(ages, at.Unix()-p.At)
	}
	assert.Equal(t, []int64{1806, 606, 306, 6, 0}, ages, "points are some seconds apart")
	assert.Nil(t, points[2].Ready)
	assert.EqualValues(t, 4, *points[2].Desired)
	assert.EqualValues(t, 2, *points[3].Ready)
	assert.EqualValues(t, 10, *points[3].Max)
	for range 1000 {
		at = at.Add(5 * time.Second)
		v.history.record(workers, at)
	}
	assert.Len(t, v.history.pools["workers"], 721, "an hour")
	at = at.Add(-time.Hour)
	v.history.record(workers, at)
	assert.Len(t, v.history.pools["workers"], 1, "a clock that is set back")
}

func TestPoolsInTroubleComeFirst(t *testing.T) {
	healthy := func(name string, change func(*v1alpha1.WorkerPool)) *v1alpha1.WorkerPool {
		p := pool(name)
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHealthy,
			Status: metav1.ConditionTrue, Reason: "Working"}}
		change(p)
		return p
	}
	failing := healthy("d", func(p *v1alpha1.WorkerPool) {
		p.Status.Conditions[0].Status, p.Status.Conditions[0].Message = metav1.ConditionFalse, "no instance can be launched"
	})
	v, _ := view(t, []client.Object{
		healthy("a", func(*v1alpha1.WorkerPool) {}),
		healthy("b", func(p *v1alpha1.WorkerPool) { p.Status.Desired = new(int32(10)) }),
		healthy("c", func(p *v1alpha1.WorkerPool) { p.Status.PendingPods = new(int32(1)) }), failing,
	})
	var names []string
	list := v.List(t.Context()).Pools
	for i := range list {
		names = append(names, list[i].Name)
	}
	assert.Equal(t, []string{"d", "c", "b", "a"}, names)
	assert.Equal(t, "no instance can be launched", list[0].Cause)
}

package extender

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
)

// createPool makes a WorkerPool whose nodes are those of the stage. Its times are short, and it is
// never idle: what makes it shrink is its maximum.
func (s *stage) createPool(least, most int32, z size, change func(*v1alpha1.WorkerPoolSpec)) {
	s.Helper()
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }
	none := resource.MustParse("0")
	object := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: v1alpha1.WorkerPoolSpec{
		Min: least, Max: most, MaxBatchUp: new(int32),
		Signals:    []v1alpha1.PoolSignal{{Name: "requests", Threshold: resource.MustParse("990m")}},
		PendingFor: seconds(1),
		Idle:       v1alpha1.IdlePolicy{CPU: &none},
		Cooldown:   v1alpha1.PoolCooldown{Up: seconds(1), Down: seconds(1)},
		Forecast:   v1alpha1.PoolForecastDisabled, Interval: seconds(1),
		Join:  v1alpha1.JoinPolicy{Timeout: seconds(90)},
		Drain: v1alpha1.DrainPolicy{Timeout: seconds(90)},
		// The process that runs the pool may end before its object is deleted.
		DeletionPolicy: v1alpha1.DeletionPolicyOrphan,
		Template:       v1alpha1.NodeTemplate{Labels: map[string]string{stageLabel: s.name}},
		Provider: v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{
			JoinDelay: seconds(1), Zones: []string{"a"},
			Shape: map[string]resource.Quantity{"cpu": resource.MustParse(z.cpu),
				"memory": resource.MustParse(z.memory), "pods": resource.MustParse(z.pods)},
		}},
	}}
	if change != nil {
		change(&object.Spec)
	}
	require.NoError(s, objects.Create(s.Context(), object))
	s.Cleanup(func() {
		if s.Failed() {
			text, _ := json.MarshalIndent(s.pool().Status, "", " ") // for people
			s.Logf("status of the pool: %s\npools: %s", text, pools.LogTail())
		}
		require.NoError(s, objects.Delete(context.WithoutCancel(s.Context()), object))
	})
}

func (s *stage) pool() *v1alpha1.WorkerPool {
	s.Helper()
	var object v1alpha1.WorkerPool
	require.NoError(s, objects.Get(context.WithoutCancel(s.Context()), client.ObjectKey{Name: s.name}, &object))
	return &object
}

// changePool changes the spec of the pool.
func (s *stage) changePool(change func(*v1alpha1.WorkerPoolSpec)) {
	s.Helper()
	before := s.pool()
	after := before.DeepCopy()
	change(&after.Spec)
	require.NoError(s, objects.Patch(s.Context(), after, client.MergeFrom(before)))
}

// nodes lists those of the stage.
func (s *stage) nodes() []corev1.Node {
	s.Helper()
	list, err := cluster.Client().CoreV1().Nodes().List(s.Context(),
		metav1.ListOptions{LabelSelector: stageLabel + "=" + s.name, ResourceVersion: "0"})
	require.NoError(s, err)
	return list.Items
}

// workers waits until the pool has so many nodes, all free to take pods, and nothing left to do.
func (s *stage) workers(n int) []corev1.Node {
	s.Helper()
	var nodes []corev1.Node
	s.until(fmt.Sprintf("%d workers", n), func() bool {
		nodes = s.nodes()
		return len(nodes) == n && !slices.ContainsFunc(nodes, func(node corev1.Node) bool { return !free(&node) }) &&
			s.pool().Status.Action == nil
	})
	return nodes
}

// free tells whether a node is Ready and nothing keeps pods from it.
func free(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && len(node.Spec.Taints) == 0 &&
		slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
}

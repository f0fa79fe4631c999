package smoke

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/journal"
)

//go:embed pool.yaml
var poolYAML []byte

const poolName = "smoke"

// TestPoolLaunchesDrainsAndRemoves takes a pool through its life: it launches a node for pods that
// fit nowhere, evicts a pod within its disruption budget when the pool becomes too large,
// terminates the instance, and takes its nodes along when it is deleted.
func TestPoolLaunchesDrainsAndRemoves(t *testing.T) {
	t.Parallel()
	_, err := shared.Cluster.Apply(t.Context(), poolYAML)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			var pool v1alpha1.WorkerPool
			err := objects.Get(context.Background(), client.ObjectKey{Name: poolName}, &pool)
			status, _ := json.MarshalIndent(pool.Status, "", " ")
			t.Logf("the pool: %v\n%s", err, status)
		}
	})
	untilReadyNodes(t, 1)

	// A node has room for three such pods. One is left when the fourth is placed.
	scale(t, "first", 1)
	untilRunning(t, "first", 1)
	scale(t, "web", 3)
	untilRunning(t, "web", 3)
	untilReadyNodes(t, 2)
	require.NotEmpty(t, poolEvents(t, journal.EventLaunched))

	// Now three pods are on two nodes, and one node is enough.
	scale(t, "first", 0)
	changePool(t, func(s *v1alpha1.WorkerPoolSpec) { s.Max = 1 })
	untilReadyNodes(t, 1)
	untilRunning(t, "web", 3)
	until(t, "the removal to be reported", func() error {
		return all("there is no Event, or more than one", len(poolEvents(t, journal.EventTerminated)) == 1)
	})
	assert.Len(t, poolEvents(t, journal.EventDrained), 1, "the node was emptied before its instance was terminated")
	assert.Empty(t, poolEvents(t, journal.EventDrainFailed))

	scale(t, "web", 0)
	require.NoError(t, objects.Delete(t.Context(), getPool(t)))
	until(t, "the nodes of the deleted pool to be gone", func() error {
		nodes, err := poolNodes(t)
		return cmp.Or(err, all("some are left", len(nodes) == 0))
	})
	// The pool itself stays for some minutes, in case the cloud lists an instance late. Orphan does not wait.
	changePool(t, func(s *v1alpha1.WorkerPoolSpec) { s.DeletionPolicy = v1alpha1.DeletionPolicyOrphan })
	until(t, "the deleted pool to be gone", func() error {
		err := objects.Get(t.Context(), client.ObjectKey{Name: poolName}, new(v1alpha1.WorkerPool))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it exists"))
	})
}

func getPool(t *testing.T) *v1alpha1.WorkerPool {
	t.Helper()
	var pool v1alpha1.WorkerPool
	require.NoError(t, objects.Get(t.Context(), client.ObjectKey{Name: poolName}, &pool))
	return &pool
}

func changePool(t *testing.T, change func(*v1alpha1.WorkerPoolSpec)) {
	t.Helper()
	before := getPool(t)
	after := before.DeepCopy()
	change(&after.Spec)
	require.NoError(t, objects.Patch(t.Context(), after, client.MergeFrom(before)))
}

func scale(t *testing.T, app string, replicas int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := shared.Cluster.Client().AppsV1().Deployments("pool").Patch(t.Context(), app, types.MergePatchType, patch,
		metav1.PatchOptions{})
	require.NoError(t, err)
}

// untilRunning waits until an app has exactly so many pods and all of them are Ready.
func untilRunning(t *testing.T, app string, n int) {
	t.Helper()
	until(t, "the pods of "+app+" to be ready", func() error {
		pods, err := shared.Cluster.Client().CoreV1().Pods("pool").List(t.Context(),
			metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return err
		}
		starting := slices.ContainsFunc(pods.Items,
			func(pod corev1.Pod) bool { return !isReady(pod.Status.Conditions) })
		return all(fmt.Sprintf("%d pods of %d", len(pods.Items), n), len(pods.Items) == n, !starting)
	})
}

func isReady(conditions []corev1.PodCondition) bool {
	return slices.ContainsFunc(conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func poolNodes(t *testing.T) ([]corev1.Node, error) {
	t.Helper()
	nodes, err := shared.Cluster.Client().CoreV1().Nodes().List(t.Context(),
		metav1.ListOptions{LabelSelector: "smoke=pool"})
	if err != nil {
		return nil, err
	}
	return nodes.Items, nil
}

// untilReadyNodes waits until the pool has exactly so many nodes, all of them open to pods, and
// nothing left to do.
func untilReadyNodes(t *testing.T, n int) {
	t.Helper()
	until(t, "the nodes of the pool", func() error {
		nodes, err := poolNodes(t)
		if err != nil {
			return err
		}
		closed := slices.ContainsFunc(nodes, func(node corev1.Node) bool {
			return node.Spec.Unschedulable || len(node.Spec.Taints) > 0
		})
		return all(fmt.Sprintf("%d nodes of %d, or an action is open", len(nodes), n),
			len(nodes) == n, !closed, getPool(t).Status.Action == nil)
	})
}

func poolEvents(t *testing.T, reason journal.EventReason) []eventsv1.Event {
	t.Helper()
	events, err := shared.Cluster.Client().EventsV1().Events(metav1.NamespaceAll).List(t.Context(),
		metav1.ListOptions{})
	require.NoError(t, err)
	return slices.DeleteFunc(events.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Kind != "WorkerPool" || e.Regarding.Name != poolName || e.Reason != string(reason)
	})
}

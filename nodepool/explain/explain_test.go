package explain

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/cluster"
)

// A pod that no other node could run blocks its node, unless the pool is being deleted.
func TestPodsDoNotBlockNodesOfADeletedPool(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{cluster.LabelPool: "workers"}},
	}
	owners := []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", OwnerReferences: owners}}
	pod.Spec.NodeName, pod.Status.Phase = "a", corev1.PodRunning
	client := fake.NewClientset(node, pod)
	pool := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
	blocked := func() string {
		e := Of(t.Context(), client, pool, 0, now)
		require.Empty(t, e.NodesError)
		require.Len(t, e.Nodes, 1)
		return e.Nodes[0].Blocked
	}
	assert.Contains(t, blocked(), "no other node could run its pod shop/web")
	pool.DeletionTimestamp = &metav1.Time{Time: now}
	assert.Empty(t, blocked())
}

package e2e

import (
	_ "embed"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/api/v1alpha1"
)

//go:embed capacitybuffers.yaml
var capacityBuffersYAML []byte

var capacityBuffers = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1",
	Resource: "capacitybuffers"}

// TestCapacityBufferOfThePredictedMetric has a ramp order spare pods before the HPA asks for these
// pods, with the rights that the manifests grant. The startup time of a node is that of one which a
// pod has waited for. The test plays the node autoscaler.
func TestCapacityBufferOfThePredictedMetric(t *testing.T) {
	t.Parallel()
	app := newApp("capacity-buffer", "app", "predicted_load_total")
	rights, err := os.ReadFile("../../../manifests/components/capacity-buffer/rbac.yaml")
	require.NoError(t, err)
	_, err = shared.Cluster.Apply(t.Context(), capacityBuffersYAML, rights)
	require.NoError(t, err)
	place(t, app)

	metrics := shared.Cluster.Dynamic().Resource(predictedMetrics).Namespace(app.Namespace)
	set := func(buffer string) {
		_, err := metrics.Patch(t.Context(), app.Name, types.MergePatchType,
			[]byte(`{"spec":{"capacityBuffer":`+buffer+`}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	buffers := shared.Cluster.Dynamic().Resource(capacityBuffers).Namespace(app.Namespace)
	started := waitForANode(t, app.Namespace)
	set("{}")
	eventually(t, time.Minute, "a buffer, of the node that a pod has waited for", func(c *assert.CollectT) {
		status := statusOf(c, app)
		require.NotNil(c, status.CapacityBuffer, "%+v", conditionOf(status, v1alpha1.ConditionCapacityBufferReady))
		assert.EqualValues(c, 1, *status.CapacityBuffer.NodesMeasured)
		assert.Equal(c, started, status.CapacityBuffer.NodeStartupTime.Duration)
		assert.Equal(c, "WaitingForNodeAutoscaler", conditionOf(status, v1alpha1.ConditionCapacityBufferReady).Reason)
	})
	_, err = buffers.Patch(t.Context(), app.Name, types.MergePatchType, []byte(`{"status": {"conditions": [
		{"type": "ReadyForProvisioning", "status": "True", "reason": "Resolved", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"},
		{"type": "Provisioning", "status": "True", "reason": "FitsExistingCapacity", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"}
	]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)

	const from, to, needed, over = 2.0, 10.0, 14, 50 * time.Second
	begin := time.Now()
	shared.Shares.Set(app.Namespace, app.Name,
		func() float64 { return from + (to-from)*min(1, time.Since(begin).Seconds()/over.Seconds()) })
	defer shared.Shares.Set(app.Namespace, app.Name, nil)
	room, pods := 0, 0 // for so many pods, while the target was set to fewer
	eventually(t, over, "spare pods, beyond those of the target", func(c *assert.CollectT) {
		// The buffer is read last: meanwhile there may only be more pods, and so less room ahead of them.
		pods = replicasOf(c, app.Namespace, app.Name)
		buffer, err := buffers.Get(suite, app.Name, metav1.GetOptions{})
		require.NoError(c, err)
		spare, _, err := unstructured.NestedInt64(buffer.Object, "spec", "replicas")
		require.NoError(c, err)
		room = pods + int(spare)
		assert.GreaterOrEqual(c, spare, int64(2)) // a pod every four seconds, and a node takes twelve
	})
	t.Logf("after %s of the ramp there are %d pods, and room for %d", time.Since(begin).Round(time.Second), pods, room)
	assert.Less(t, time.Since(begin), over)
	eventually(t, 2*time.Minute, "the pods that there was room for", func(c *assert.CollectT) {
		assert.GreaterOrEqual(c, replicasOf(c, app.Namespace, app.Name), min(room, needed))
	})
	// They go five minutes later, which capacitybuffer.TestShrinksOnceItHasNotBeenNeededForAWhile has in virtual time.
	eventually(t, 2*time.Minute, "spare pods that are no longer needed, once the load has stopped rising",
		func(c *assert.CollectT) {
			condition := conditionOf(statusOf(c, app), v1alpha1.ConditionCapacityBufferReady)
			assert.Contains(c, condition.Message, "; 0 would do")
			assert.Equal(c, "SizedByForecast", condition.Reason)
		})

	set("null")
	eventually(t, time.Minute, "neither buffer nor condition", func(c *assert.CollectT) {
		status := statusOf(c, app)
		assert.Nil(c, status.CapacityBuffer)
		assert.Empty(c, conditionOf(status, v1alpha1.ConditionCapacityBufferReady))
	})
	_, err = buffers.Get(t.Context(), app.Name, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func replicasOf(c require.TestingT, namespace, name string) int {
	deployment, err := shared.Cluster.Client().AppsV1().Deployments(namespace).Get(suite, name, metav1.GetOptions{})
	require.NoError(c, err)
	return int(*deployment.Spec.Replicas)
}

// waitForANode has a pod wait for a node that is its own, and returns for how long it did.
func waitForANode(t *testing.T, namespace string) time.Duration {
	t.Helper()
	const label = "foresail.dev/of-test"
	client := shared.Cluster.Client()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "waits-for-a-node"}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{label: namespace}, Containers: []corev1.Container{{Name: "main",
			Image: "example.com/app"}},
	}}
	_, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, time.Minute, "the pod has waited for as long as a fast cloud takes", func(c *assert.CollectT) {
		pod, err := client.CoreV1().Pods(namespace).Get(suite, pod.Name, metav1.GetOptions{})
		require.NoError(c, err)
		assert.Greater(c, time.Since(pod.CreationTimestamp.Time), 12*time.Second)
	})
	_, err = shared.Cluster.AddNodesLike(t.Context(), 1, func(n *corev1.Node) { n.Labels[label] = namespace })
	require.NoError(t, err)
	var waited time.Duration
	eventually(t, time.Minute, "the pod has its node", func(c *assert.CollectT) {
		pod, err := client.CoreV1().Pods(namespace).Get(suite, pod.Name, metav1.GetOptions{})
		require.NoError(c, err)
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
				waited = condition.LastTransitionTime.Sub(pod.CreationTimestamp.Time)
			}
		}
		assert.Positive(c, waited)
	})
	return waited
}

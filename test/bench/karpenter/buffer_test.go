//go:build long

package karpenter_test

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/test/bench/karpenter"
)

// podsPerNode is how many of the pods fit on a node.
const podsPerNode = 2

//go:embed app.yaml
var appYAML string

var appTemplate = template.Must(template.New("app.yaml").Parse(appYAML))

// app is a Deployment in a namespace of its own whose pods run on nodes of a pool of its own. All
// three have its name.
type app struct {
	testing.TB
	Name     string
	Replicas int
}

func newApp(t *testing.T, name string, replicas int) app {
	t.Helper()
	newPool(t, name)
	a := app{t, name, replicas}
	var manifest bytes.Buffer
	require.NoError(t, appTemplate.Execute(&manifest, a))
	a.apply(manifest.String())
	t.Cleanup(func() {
		require.NoError(t, shared.stack.Cluster.Client().CoreV1().Namespaces().Delete(context.Background(), name,
			metav1.DeleteOptions{}))
	})
	return a
}

func (a app) apply(manifest string) {
	a.Helper()
	_, err := shared.stack.Cluster.Apply(a.Context(), []byte(manifest))
	require.NoError(a, err)
}

// buffer applies a CapacityBuffer of so many pods like those of the Deployment.
func (a app) buffer(replicas int) {
	a.Helper()
	a.apply(bufferManifest(a.Name, a.Name, replicas))
}

func bufferManifest(namespace, deployment string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  scalableRef: {apiGroup: apps, kind: Deployment, name: %[2]s}
  replicas: %[3]d
`, namespace, deployment, replicas)
}

func (a app) scale(replicas int) {
	a.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	deployments := shared.stack.Cluster.Client().AppsV1().Deployments(a.Name)
	_, err := deployments.Patch(a.Context(), a.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	require.NoError(a, err)
}

// bufferStatus is what Karpenter reports of a CapacityBuffer.
type bufferStatus struct {
	Replicas             *int32             `json:"replicas"`
	ProvisioningStrategy string             `json:"provisioningStrategy"`
	Conditions           []metav1.Condition `json:"conditions"`
}

func bufferStatusOf(t require.TestingT, namespace, name string) (s bufferStatus) {
	object, err := shared.stack.Cluster.Dynamic().Resource(karpenter.CapacityBuffers).Namespace(namespace).Get(shared,
		name, metav1.GetOptions{})
	require.NoError(t, err)
	status, _, err := unstructured.NestedMap(object.Object, "status")
	require.NoError(t, err)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(status, &s))
	return s
}

// fits tells whether Karpenter reports room for all of a buffer, on nodes or on instances that it
// has launched.
func (s bufferStatus) fits() bool {
	c := meta.FindStatusCondition(s.Conditions, "Provisioning")
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == "FitsExistingCapacity"
}

// nodes lists the Ready nodes of the pool.
func (a app) nodes(t require.TestingT) (ready []corev1.Node) {
	list, err := shared.stack.Cluster.Client().CoreV1().Nodes().List(shared,
		metav1.ListOptions{LabelSelector: karpenter.PoolLabel + "=" + a.Name})
	require.NoError(t, err)
	for _, node := range list.Items {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
				ready = append(ready, node)
			}
		}
	}
	return ready
}

func (a app) pods(t require.TestingT) []corev1.Pod {
	list, err := shared.stack.Cluster.Client().CoreV1().Pods(a.Name).List(shared, metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// running waits until so many pods have a node.
func (a app) running(n int, span time.Duration) {
	a.Helper()
	eventually(a.TB, span, fmt.Sprintf("%d pods run", n), func(c *assert.CollectT) {
		pods := a.pods(c)
		assert.Len(c, pods, n)
		for _, pod := range pods {
			assert.Equal(c, corev1.PodRunning, pod.Status.Phase)
		}
	})
}

func TestNodesComeForPodsAndGo(t *testing.T) {
	t.Parallel()
	a := newApp(t, "pods", 3)
	l := newLedger(t, a.Name)
	l.watchNodeClaims(t, a.Name)
	begin := time.Now()
	a.running(3, nodeStart+time.Minute)
	assert.Len(t, a.nodes(t), 2)
	f := l.figures(begin, time.Now())
	t.Logf("3 pods waited for %s in all, for instances that take %s", f.pending.Round(time.Second), nodeStart)
	assert.GreaterOrEqual(t, f.pending, 3*(nodeStart-time.Second), "an instance takes its time to start")

	a.scale(0)
	eventually(t, consolidateAfter+time.Minute, "no node is left",
		func(c *assert.CollectT) { assert.Empty(c, a.nodes(c)) })
}

func TestBuffer(t *testing.T) {
	t.Parallel()
	a := newApp(t, "buffer", 0)
	a.buffer(3)
	eventually(t, nodeStart+time.Minute, "nodes for the buffer, and no pod", func(c *assert.CollectT) {
		assert.Len(c, a.nodes(c), 2)
		assert.True(c, bufferStatusOf(c, a.Name, a.Name).fits())
	})
	require.Empty(t, a.pods(t))
	status := bufferStatusOf(t, a.Name, a.Name)
	require.NotNil(t, status.Replicas)
	assert.Equal(t, int32(3), *status.Replicas)
	t.Logf("the status of the buffer: %+v", status)

	spare := map[string]bool{}
	for _, node := range a.nodes(t) {
		spare[node.Name] = true
	}
	a.scale(3)
	a.running(3, 20*time.Second)
	for _, pod := range a.pods(t) {
		assert.Contains(t, spare, pod.Spec.NodeName, "a pod got a node that was there before it")
	}
	// Pods that find room do not have Karpenter look. It does so when it resolves the buffer again.
	eventually(t, 30*time.Second+nodeStart+time.Minute, "a buffer of three pods beside those that run",
		func(c *assert.CollectT) {
			assert.Len(c, a.nodes(c), 3)
		})

	a.scale(0)
	a.buffer(0)
	eventually(t, consolidateAfter+90*time.Second, "no node is left",
		func(c *assert.CollectT) { assert.Empty(c, a.nodes(c)) })
	t.Logf("the status of an empty buffer: %+v", bufferStatusOf(t, a.Name, a.Name))
}

package drain

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/test/env/controlplane"
)

// server is a real API server without controllers and kubelets: tests write what these would write.
var server *controlplane.Cluster

func TestMain(m *testing.M) {
	controlplane.MainBorrowing(m, func(_ context.Context, c *controlplane.Cluster) error {
		server = c
		return nil
	})
}

// fixture is the Node and the namespace of one test.
type fixture struct {
	*testing.T
	client    kubernetes.Interface
	drainer   *Drainer
	node      string
	namespace string
	now       time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Parallel()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	f := &fixture{T: t, client: server.Client(), node: name, namespace: name, now: time.Unix(1_000_000, 0)}
	f.drainer = &Drainer{Client: f.client, Now: func() time.Time { return f.now }}
	f.addNode(name)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := f.client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	return f
}

func (f *fixture) addNode(name string) {
	f.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"theirs": "kept"}},
		Spec: corev1.NodeSpec{
			ProviderID: "test:///" + name,
			Taints:     []corev1.Taint{{Key: "theirs", Value: "kept", Effect: corev1.TaintEffectPreferNoSchedule}},
		},
	}
	_, err := f.client.CoreV1().Nodes().Create(f.Context(), node, metav1.CreateOptions{})
	require.NoError(f, err)
}

func (f *fixture) getNode() *corev1.Node {
	f.Helper()
	node, err := f.client.CoreV1().Nodes().Get(f.Context(), f.node, metav1.GetOptions{})
	require.NoError(f, err)
	return node
}

// addPod adds a running pod of a ReplicaSet to the node, with some edits.
func (f *fixture) addPod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	f.Helper()
	pod := newPod(f.namespace, name, f.node)
	for _, edit := range edits {
		edit(pod)
	}
	status := pod.Status
	pod, err := f.client.CoreV1().Pods(pod.Namespace).Create(f.Context(), pod, metav1.CreateOptions{})
	require.NoError(f, err)
	pod.Status = status
	pod, err = f.client.CoreV1().Pods(pod.Namespace).UpdateStatus(f.Context(), pod, metav1.UpdateOptions{})
	require.NoError(f, err)
	return pod
}

// newPod returns a pod without a grace period: no kubelet would confirm its end.
func newPod(namespace, name, node string) *corev1.Pod {
	yes, zero := true, int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"app": name},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "owner", UID: "owner", Controller: &yes},
			},
		},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			TerminationGracePeriodSeconds: &zero,
			AutomountServiceAccountToken:  new(bool),
			Containers:                    []corev1.Container{{Name: "main", Image: "none"}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func ownedBy(kind string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.OwnerReferences[0].Kind = kind }
}

func bare(pod *corev1.Pod) { pod.OwnerReferences = nil }

// grace sets the grace period of a pod: its object then stays, as there is no kubelet.
func grace(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// names returns the names of the pods of the namespace.
func (f *fixture) names() []string {
	f.Helper()
	list, err := f.client.CoreV1().Pods(f.namespace).List(f.Context(), metav1.ListOptions{})
	require.NoError(f, err)
	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}

func (f *fixture) evict(l Limits) Progress {
	f.Helper()
	progress, err := f.drainer.Evict(f.Context(), f.node, l)
	require.NoError(f, err)
	return progress
}

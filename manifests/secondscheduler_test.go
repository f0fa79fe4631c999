package manifests_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/test/controlplane"
)

// TestTheSecondSchedulerMayDoItsWork runs a real kube-scheduler with the configuration of the overlay and the rights of its
// account, and has it place a pod. Nothing answers it in the place of Foresail.
func TestTheSecondSchedulerMayDoItsWork(t *testing.T) {
	binaries, err := controlplane.Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{APIOnly: true, Progress: os.Stderr, Binaries: binaries})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	for _, file := range []string{"base/namespace.yaml", "overlays/second-scheduler/rbac.yaml"} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = cluster.Apply(t.Context(), content)
		require.NoError(t, err)
	}
	kubeconfig, err := cluster.KubeconfigForServiceAccount(t.Context(), "foresail-system", "foresail-scheduler")
	require.NoError(t, err)
	home := t.TempDir()
	log := filepath.Join(home, "log")
	scheduler, err := controlplane.StartProcess("second scheduler", binaries.Path(controlplane.Scheduler), log, home, []string{
		"--config=" + outsideOfAPod(t, kubeconfig), "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--secure-port=0", // nobody asks it anything here
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, scheduler.Stop(3*time.Second)) })

	addRoomyNode(t, cluster)
	pods := cluster.Client().CoreV1().Pods("default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "placed"}, Spec: corev1.PodSpec{SchedulerName: "foresail-scheduler"}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main"}}
	_, err = pods.Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	for deadline := time.Now().Add(time.Minute); pod.Spec.NodeName == ""; time.Sleep(100 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "it is not placed: %s", scheduler.LogTail())
		pod, err = pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		require.NoError(t, err)
	}
	assert.Equal(t, "roomy", pod.Spec.NodeName)
	lease, err := cluster.Client().CoordinationV1().Leases("foresail-system").Get(t.Context(), "foresail-scheduler", metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotEmpty(t, *lease.Spec.HolderIdentity)
	said, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.NotContains(t, string(said), "forbidden")
}

// outsideOfAPod is the configuration of the overlay for a scheduler that is no pod: where the API server is has to be told, and
// the name of the Service means nothing.
func outsideOfAPod(t *testing.T, kubeconfig string) string {
	t.Helper()
	data, err := os.ReadFile(secondScheduler)
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, yaml.Unmarshal(data, &document))
	document["clientConnection"].(map[string]any)["kubeconfig"] = kubeconfig
	document["extenders"].([]any)[0].(map[string]any)["urlPrefix"] = "https://127.0.0.1:1/scheduler"
	data, err = yaml.Marshal(document)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "kubescheduler.yaml")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// addRoomyNode adds a Node that is Ready, and the account that pods have.
func addRoomyNode(t *testing.T, cluster *controlplane.Cluster) {
	t.Helper()
	core := cluster.Client().CoreV1()
	_, err := core.ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	node, err := core.Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "roomy"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	node.Spec.Taints = nil // of being new; what takes it off does not run
	node, err = core.Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = core.Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
}

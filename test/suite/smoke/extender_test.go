package smoke

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/monitoring"
)

// nodeUsage serves metrics.k8s.io with amounts that tests set, as nodes here have no kubelet that
// measures them.
type nodeUsage struct {
	mu     sync.Mutex
	memory map[string]resource.Quantity // by node
}

func serveUsage(ctx context.Context, cluster *controlplane.Cluster) (*nodeUsage, error) {
	u := &nodeUsage{memory: map[string]resource.Quantity{}}
	return u, monitoring.ServeNodeMetrics(ctx, cluster, u.list)
}

func (u *nodeUsage) list() []metricsv1beta1.NodeMetrics {
	u.mu.Lock()
	defer u.mu.Unlock()
	var list []metricsv1beta1.NodeMetrics
	for node, memory := range u.memory {
		list = append(list, metricsv1beta1.NodeMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: node}, Timestamp: metav1.Now(),
			Window: metav1.Duration{Duration: time.Second},
			Usage:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: memory},
		})
	}
	return list
}

func (u *nodeUsage) set(node, memory string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.memory[node] = resource.MustParse(memory)
}

// TestExtenderFilters has a real scheduler place pods on two nodes that are alike by requests. The
// memory of one of them is nearly used up, which only the extender knows.
func TestExtenderFilters(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nodes, err := shared.Cluster.AddNodesLike(ctx, 2, func(node *corev1.Node) {
		node.Labels["smoke"] = "extender"
		room := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
			corev1.ResourcePods: resource.MustParse("500"),
		}
		node.Status.Capacity, node.Status.Allocatable = room, room
	})
	require.NoError(t, err)
	full, free := nodes[0], nodes[1]
	usage.set(full, "7900Mi")
	usage.set(free, "1Gi")
	// The extender does not refuse a node without pods, as that node could never be used again.
	_, err = shared.Cluster.Client().CoreV1().Pods("default").Create(ctx,
		guest("resident", func(s *corev1.PodSpec) { s.NodeName = full }), metav1.CreateOptions{})
	require.NoError(t, err)

	scheduler, err := shared.Cluster.StartScheduler(ctx, "extended", schedulerConfig(t))
	require.NoError(t, err)
	foresail.EndWith(t, scheduler.Name, scheduler.Process)
	// Until the extender has read both nodes often enough for a forecast, requests decide. So pods
	// are tried one after the other.
	tried := 0
	until(t, "the full node to be filtered", func() error {
		tried++
		node := place(t, scheduler.Name, tried)
		return all("a pod was placed on "+node, node == free,
			adapter.MustMetrics(t).Sum(filtered, "reason", "memory") > 0)
	})
	for range 5 {
		tried++
		assert.Equal(t, free, place(t, scheduler.Name, tried), "the node of a pod that requests next to nothing")
	}
}

// filtered is the metric that counts nodes that the extender refused.
const filtered = "foresail_extender_nodes_filtered_total"

// place creates a pod and returns the node that it was bound to.
func place(t *testing.T, scheduler string, number int) (node string) {
	t.Helper()
	pods := shared.Cluster.Client().CoreV1().Pods("default")
	name := fmt.Sprintf("guest-%d", number)
	_, err := pods.Create(t.Context(), guest(name, func(s *corev1.PodSpec) { s.SchedulerName = scheduler }),
		metav1.CreateOptions{})
	require.NoError(t, err)
	until(t, name+" to be bound", func() error {
		pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node = pod.Spec.NodeName
		return all("it has no node", node != "")
	})
	return node
}

func guest(name string, change func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"smoke": "extender"}, AutomountServiceAccountToken: new(bool),
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"),
					corev1.ResourceMemory: resource.MustParse("16Mi")},
			}}},
		},
	}
	change(&pod.Spec)
	return pod
}

// schedulerConfig returns the configuration of the manifests with the address of the extender and
// the cluster's authority.
func schedulerConfig(t *testing.T) []byte {
	t.Helper()
	manifest, err := foresail.ReadManifest("scheduler/kubescheduler.yaml")
	require.NoError(t, err)
	config := map[string]any{}
	require.NoError(t, yaml.Unmarshal(manifest, &config))
	delete(config, "clientConnection")
	delete(config["profiles"].([]any)[0].(map[string]any), "schedulerName")
	e := config["extenders"].([]any)[0].(map[string]any)
	e["urlPrefix"] = "https://" + extenderAddress + "/scheduler"
	e["tlsConfig"] = map[string]any{"caData": shared.Cluster.CA()}
	e["httpTimeout"] = "5s" // the answer is what the test is about, not how soon it comes
	content, err := yaml.Marshal(config)
	require.NoError(t, err)
	return content
}

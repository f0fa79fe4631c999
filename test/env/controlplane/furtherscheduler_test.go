package controlplane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testFurtherScheduler has a scheduler of its own fill a small node up, where the cluster's own one
// would spread pods.
func testFurtherScheduler(t *testing.T, cluster *Cluster) {
	names, err := cluster.AddNodesLike(t.Context(), 2, func(node *corev1.Node) {
		node.Labels["size"] = "small"
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
			corev1.ResourcePods: resource.MustParse("110"),
		}
	})
	require.NoError(t, err)
	require.Len(t, names, 2)
	scheduler, err := cluster.StartScheduler(t.Context(), "packing", []byte(`
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 1}]}
`))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, scheduler.Stop(stopDeadline)) })
	for _, name := range []string{"one", "two", "three"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "packed-" + name, Labels: map[string]string{"app": "packed"}},
			Spec: corev1.PodSpec{
				SchedulerName: "packing", NodeSelector: map[string]string{"size": "small"},
				Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
				}}},
			},
		}
		_, err := cluster.Client().CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			pod, err = cluster.Client().CoreV1().Pods("default").Get(t.Context(), pod.Name, metav1.GetOptions{})
			return err == nil && pod.Spec.NodeName != ""
		}, 20*time.Second, pollInterval)
	}
	on := map[string]int{}
	pods, err := listPods(t.Context(), cluster, "packed")
	require.NoError(t, err)
	for _, pod := range pods {
		on[pod.Spec.NodeName]++
	}
	require.Len(t, on, 1, "%v", on)

	families, err := scheduler.Metrics(t.Context())
	require.NoError(t, err)
	scheduled := 0.0
	for _, metric := range families["scheduler_schedule_attempts_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "result" && label.GetValue() == "scheduled" {
				scheduled += metric.GetCounter().GetValue()
			}
		}
	}
	require.Equal(t, 3.0, scheduled)

	_, err = cluster.StartScheduler(t.Context(), "broken", []byte("profiles: [{plugins: 3}]"))
	require.ErrorContains(t, err, "scheduler broken")
}

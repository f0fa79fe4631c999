package drain

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/nodepool/cluster"
)

// podsOf reads the pods of a node that a drain evicts, awaits or is blocked by, by namespace and name.
func podsOf(ctx context.Context, client kubernetes.Interface, node string, now time.Time) ([]*corev1.Pod, error) {
	// Without a resource version the API server returns what is stored.
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list pods of node %s: %w", node, err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		switch class, _ := cluster.Classify(&list.Items[i], now); class {
		case cluster.Ignored, cluster.Tolerant:
		default:
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// arriving reports whether any pod without a node may be bound soon.
func arriving(ctx context.Context, client kubernetes.Interface) (bool, error) {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", "").String(), Limit: 500}
	for {
		list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return false, fmt.Errorf("list pods without a node: %w", err)
		}
		if slices.ContainsFunc(list.Items, mayBeBound) {
			return true, nil
		}
		if options.Continue = list.Continue; list.Continue == "" {
			return false, nil
		}
	}
}

// mayBeBound reports whether a scheduler may have chosen a node for a pod. For a pod that was unschedulable last this
// is unlikely, and such a pod may wait forever; if it is bound all the same, the last pass before the end of the node
// finds it.
func mayBeBound(pod corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 &&
		!cluster.Ended(&pod) && cluster.Unschedulability(&pod) == nil
}

func attached(ctx context.Context, client kubernetes.Interface) (map[string][]string, error) {
	list, err := client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list volumeattachments: %w", err)
	}
	out := map[string][]string{}
	for _, a := range list.Items {
		if volume := a.Spec.Source.PersistentVolumeName; volume != nil {
			out[a.Spec.NodeName] = append(out[a.Spec.NodeName], *volume)
		}
	}
	return out, nil
}

func name(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

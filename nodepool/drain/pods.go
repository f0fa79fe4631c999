package drain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// Blockers returns why a node must not be drained, as namespace/name: why, one entry for each pod that blocks it. Pods
// that are leaving already block nothing.
func (d *Drainer) Blockers(ctx context.Context, node string) ([]string, error) {
	pods, err := d.pods(ctx, node)
	if err != nil {
		return nil, err
	}
	var blockers []string
	for _, pod := range pods {
		if why := blocks(pod); why != "" && pod.DeletionTimestamp == nil {
			blockers = append(blockers, pod.Namespace+"/"+pod.Name+": "+why)
		}
	}
	return blockers, nil
}

// pods reads the pods of a node that a drain would have to move, by namespace and name.
func (d *Drainer) pods(ctx context.Context, node string) ([]*corev1.Pod, error) {
	// Without a resource version the API server answers with what is stored.
	list, err := d.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list pods of node %s: %w", node, err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if !stays(&list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// stays tells whether a drain ignores a pod: it has finished, or it belongs to the node.
func stays(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// blocks returns why a pod must not be moved, "" if it may.
func blocks(pod *corev1.Pod) string {
	switch {
	case slices.Contains([]string{"system-node-critical", "system-cluster-critical"}, pod.Spec.PriorityClassName):
		return "it has priority class " + pod.Spec.PriorityClassName
	case pod.Namespace == metav1.NamespaceSystem:
		return "it belongs to the system"
	case metav1.GetControllerOf(pod) == nil:
		return "nothing would bring it back"
	}
	return ""
}

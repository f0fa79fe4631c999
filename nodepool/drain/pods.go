package drain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/foresail/foresail/nodepool/cluster"
)

// Blockers returns why a node must not be drained: for each pod that blocks it a sentence such as "default/a has critical
// priority". Pods that are leaving already block nothing.
func (d *Drainer) Blockers(ctx context.Context, node string) ([]string, error) {
	pods, err := d.pods(ctx, node)
	if err != nil {
		return nil, err
	}
	var blockers []string
	for _, pod := range pods {
		if class, why := cluster.Classify(pod, d.Now()); class == cluster.Blocking {
			blockers = append(blockers, name(pod)+" "+why)
		}
	}
	return blockers, nil
}

// pods reads the pods of a node that a drain evicts, waits for or is blocked by, by namespace and name.
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
		switch class, _ := cluster.Classify(&list.Items[i], d.Now()); class {
		case cluster.Ignored, cluster.Tolerant:
		default:
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// Arriving tells whether a pod may still come to a tainted node: one that has no node yet may have been given this one
// before its scheduler saw the taint, as a scheduler decides first and binds later, seconds later where many wait for it.
func (d *Drainer) Arriving(ctx context.Context) (bool, error) {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", "").String(), Limit: 500}
	for {
		list, err := d.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
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

// Attached returns the volumes that are attached, by node, as the names of their PersistentVolumes; those that are being detached
// included. Those of a node that ends with them attached can be used nowhere else for minutes. The list is what the API server has
// at hand, which may lag: for volumes of a node without pods that only makes it wait.
func (d *Drainer) Attached(ctx context.Context) (map[string][]string, error) {
	list, err := d.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
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

// mayBeBound tells whether a scheduler may have found a node for a pod. Of one for which it last found none that is not
// likely, and such a pod may wait forever; if it comes all the same, the last look before the end of the node sees it.
func mayBeBound(pod corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 && !cluster.Ended(&pod) &&
		cluster.Unschedulability(&pod) == nil
}

func name(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

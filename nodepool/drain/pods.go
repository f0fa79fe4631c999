package drain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/foresail/foresail/nodepool/world"
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
		if class, why := world.Classify(pod); class == world.Blocking {
			blockers = append(blockers, name(pod)+" "+why)
		}
	}
	return blockers, nil
}

// pods reads the pods of a node that a drain looks at, by namespace and name.
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
		if class, _ := world.Classify(&list.Items[i]); class != world.Ignored {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

func name(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

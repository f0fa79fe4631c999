package drain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

const (
	// Mark is the key of the taint, and of the annotation, of a Node that is being removed. The value of both is the id of
	// the action. The annotation is left if another writer removes the taint.
	Mark = cluster.Removing
	// CordonedBy is the annotation of a Node that records who cordoned it.
	CordonedBy = "foresail.dev/cordoned-by"

	byDrain  = "foresail"
	byOthers = "others"
)

// MarkOf returns the id of the action that removes a Node, and whether there is one.
func MarkOf(node *corev1.Node) (action string, marked bool) {
	for _, taint := range node.Spec.Taints {
		if taint.Key == Mark {
			return taint.Value, true
		}
	}
	action, marked = node.Annotations[Mark]
	return action, marked
}

// Cordoned reports whether a Node was cordoned by a [Drainer].
func Cordoned(node *corev1.Node) bool {
	return node.Spec.Unschedulable && node.Annotations[CordonedBy] == byDrain
}

// nodes marks, finds and deletes Nodes.
type nodes struct{ client kubernetes.Interface }

func (s nodes) taint(ctx context.Context, node, action string) error {
	return s.change(ctx, node, func(n *corev1.Node) bool {
		mark := corev1.Taint{Key: Mark, Value: action, Effect: corev1.TaintEffectNoSchedule}
		at := slices.IndexFunc(n.Spec.Taints, isOurs)
		if at >= 0 && n.Annotations[Mark] == action &&
			n.Spec.Taints[at].MatchTaint(&mark) && n.Spec.Taints[at].Value == action {
			return false
		}
		n.Spec.Taints = append(slices.DeleteFunc(n.Spec.Taints, isOurs), mark)
		annotate(n, Mark, action)
		return true
	})
}

func (s nodes) cordon(ctx context.Context, node string) error {
	return s.change(ctx, node, func(n *corev1.Node) bool {
		if n.Annotations[CordonedBy] != "" && n.Spec.Unschedulable {
			return false
		}
		by := byDrain
		if n.Spec.Unschedulable {
			by = byOthers
		}
		annotate(n, CordonedBy, by)
		n.Spec.Unschedulable = true
		return true
	})
}

func (s nodes) restore(ctx context.Context, node string) error {
	err := s.change(ctx, node, func(n *corev1.Node) bool {
		_, marked := MarkOf(n)
		if !marked && n.Annotations[CordonedBy] == "" {
			return false
		}
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isOurs)
		if n.Annotations[CordonedBy] == byDrain {
			n.Spec.Unschedulable = false
		}
		delete(n.Annotations, Mark)
		delete(n.Annotations, CordonedBy)
		return true
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (s nodes) marked(ctx context.Context) (map[string]string, error) {
	list, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	marked := map[string]string{}
	for i := range list {
		if action, ok := MarkOf(&list[i]); ok {
			marked[list[i].Name] = action
		}
	}
	return marked, nil
}

func (s nodes) of(ctx context.Context, providerID, instanceID string) (string, error) {
	list, err := s.list(ctx)
	if err != nil {
		return "", err
	}
	name := ""
	for i := range list {
		n := &list[i]
		if id := n.Spec.ProviderID; id == "" || id != providerID && provider.IDOf(id) != instanceID {
			continue
		}
		if name != "" {
			return "", fmt.Errorf("nodes %s and %s both have the provider id of %s: must be one", name, n.Name, instanceID)
		}
		name = n.Name
	}
	return name, nil
}

func (s nodes) list(ctx context.Context) ([]corev1.Node, error) {
	// Without a resource version the API server returns what is stored.
	list, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return list.Items, nil
}

func (s nodes) delete(ctx context.Context, node, providerID string) error {
	n, err := s.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !provider.Same(n.Spec.ProviderID, providerID) {
		return nil
	}
	err = s.client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(n.UID)),
	})
	// A conflict means that another Node has taken the name just now.
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// change patches a Node, again on the newest version after each conflict. edit returns false if nothing is to be
// changed.
func (s nodes) change(ctx context.Context, name string, edit func(*corev1.Node) bool) error {
	client := s.client.CoreV1().Nodes()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		old := node.DeepCopy()
		if !edit(node) {
			return nil
		}
		patch, err := patchOf(old, node)
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// patchOf returns the merge patch of taints, cordon and our annotations. It is valid for that version of the Node
// only, as the list of taints is replaced as a whole.
func patchOf(from, to *corev1.Node) ([]byte, error) {
	annotations := map[string]any{}
	for _, key := range []string{Mark, CordonedBy} {
		if value, ok := to.Annotations[key]; ok {
			annotations[key] = value
		} else if _, ok := from.Annotations[key]; ok {
			annotations[key] = nil
		}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": from.UID, "resourceVersion": from.ResourceVersion, "annotations": annotations},
		"spec":     map[string]any{"taints": to.Spec.Taints, "unschedulable": to.Spec.Unschedulable},
	})
}

func isOurs(taint corev1.Taint) bool { return taint.Key == Mark }

func annotate(node *corev1.Node, key, value string) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[key] = value
}

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
	"k8s.io/client-go/util/retry"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

const (
	// Mark is the key of the taint, and of the annotation, of a Node that is being removed. Both have the id of the action
	// as their value. The annotation outlives a taint that somebody takes away.
	Mark = cluster.Removing
	// CordonedBy is the annotation of a Node that tells who had cordoned it when a drain came to it.
	CordonedBy = "foresail.dev/cordoned-by"

	byDrain  = "foresail"
	byOthers = "others"
)

// MarkOf returns the id of the action that a Node is being removed by, and whether there is one.
func MarkOf(node *corev1.Node) (action string, marked bool) {
	for _, taint := range node.Spec.Taints {
		if taint.Key == Mark {
			return taint.Value, true
		}
	}
	action, marked = node.Annotations[Mark]
	return action, marked
}

// Cordoned tells whether a Node is unschedulable as a [Drainer] has made it so.
func Cordoned(node *corev1.Node) bool {
	return node.Spec.Unschedulable && node.Annotations[CordonedBy] == byDrain
}

// Taint keeps new pods away from a node, in the name of an action. A mark of another action is replaced.
func (d *Drainer) Taint(ctx context.Context, node, action string) error {
	err := d.change(ctx, node, func(n *corev1.Node) bool {
		want := corev1.Taint{Key: Mark, Value: action, Effect: corev1.TaintEffectNoSchedule}
		at := slices.IndexFunc(n.Spec.Taints, isOurs)
		if at >= 0 && n.Annotations[Mark] == action && n.Spec.Taints[at].MatchTaint(&want) && n.Spec.Taints[at].Value == action {
			return false
		}
		n.Spec.Taints = append(slices.DeleteFunc(n.Spec.Taints, isOurs), want)
		annotate(n, Mark, action)
		return true
	})
	return wrap(err, "taint node %s", node)
}

// Cordon makes a node unschedulable and remembers, the first time, whether others had done so before.
func (d *Drainer) Cordon(ctx context.Context, node string) error {
	err := d.change(ctx, node, func(n *corev1.Node) bool {
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
	return wrap(err, "cordon node %s", node)
}

// Restore takes back what Taint and Cordon did. A cordon by others stays. A Node that is gone is no error.
func (d *Drainer) Restore(ctx context.Context, node string) error {
	d.forget(node)
	err := d.change(ctx, node, func(n *corev1.Node) bool {
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
	return wrap(err, "restore node %s", node)
}

// Marked returns the nodes that are being removed, with the ids of the actions.
func (d *Drainer) Marked(ctx context.Context) (map[string]string, error) {
	nodes, err := d.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	marked := map[string]string{}
	for i := range nodes.Items {
		if action, ok := MarkOf(&nodes.Items[i]); ok {
			marked[nodes.Items[i].Name] = action
		}
	}
	return marked, nil
}

// NodeOf returns the name of the Node of an instance, by its provider id or by one that ends in the
// id of the instance, "" if there is none. It asks the API server itself. Several such Nodes are an
// error.
func (d *Drainer) NodeOf(ctx context.Context, providerID, instanceID string) (string, error) {
	if instanceID == "" {
		return "", fmt.Errorf("find the node of an instance: no id: want one beside the provider id %q", providerID)
	}
	// Without a resource version the API server answers with what is stored.
	nodes, err := d.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list nodes: %w", err)
	}
	name := ""
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if id := n.Spec.ProviderID; id == "" || id != providerID && provider.IDOf(id) != instanceID {
			continue
		}
		if name != "" {
			return "", fmt.Errorf("nodes %s and %s both have the provider id of %s: want one", name, n.Name, instanceID)
		}
		name = n.Name
	}
	return name, nil
}

// DeleteNode deletes a Node if it still has that provider id: a node of the same name may be another instance. A Node
// that is gone, or is another instance, is no error.
func (d *Drainer) DeleteNode(ctx context.Context, node, providerID string) error {
	if providerID == "" {
		return fmt.Errorf("delete node %s: no provider id: want the one of its instance", node)
	}
	d.forget(node)
	n, err := d.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete node %s: %w", node, err)
	}
	if !provider.Same(n.Spec.ProviderID, providerID) {
		return nil
	}
	err = d.Client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(n.UID))})
	// A conflict means another Node under this name, since a moment ago.
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return wrap(err, "delete node %s", node)
}

// change patches a Node as edit says, again on the newest one as often as others write it meanwhile. An edit returns
// false if there is nothing to be changed.
func (d *Drainer) change(ctx context.Context, name string, edit func(*corev1.Node) bool) error {
	nodes := d.Client.CoreV1().Nodes()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
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
		_, err = nodes.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// patchOf returns the merge patch of taints, cordon and our annotations. It holds for that version of the Node only, as
// the list of taints is replaced as a whole.
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

// wrap adds what was tried to an error, if there is one.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

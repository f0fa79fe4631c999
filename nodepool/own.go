package nodepool

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// NodeLabeler is a [Labeler] of the nodes of a cluster. It needs the permission to patch nodes.
type NodeLabeler struct {
	Client kubernetes.Interface
}

// Label implements [Labeler].
func (l NodeLabeler) Label(ctx context.Context, node, pool string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{LabelPool: pool}}})
	if err != nil {
		return err
	}
	_, err = l.Client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("label node %s: %w", node, err)
	}
	return nil
}

package main

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/internal/mirror"
	"github.com/foresail/foresail/internal/nodequery"
)

// nodeNames knows what the Nodes of the cluster can be named by.
type nodeNames struct {
	client kubernetes.Interface
	mu     sync.Mutex
	table  *mirror.Table[string, *corev1.Node, nodequery.Node]
}

func newNodeNames(client kubernetes.Interface) *nodeNames {
	n := &nodeNames{client: client}
	n.table = mirror.New(mirror.Options[string, *corev1.Node, nodequery.Node]{
		What: "nodes", Lock: &n.mu, Now: time.Now, Key: func(node *corev1.Node) string { return node.Name },
		Keep: func(node *corev1.Node) (nodequery.Node, bool) { return nodequery.Of(node), true },
	})
	return n
}

// run keeps the names up to date until the context ends.
func (n *nodeNames) run(ctx context.Context) error {
	mirror.Reflect(ctx, n.client, n.table, &corev1.Node{}, n.client.CoreV1().Nodes())
	return nil
}

// all returns the Nodes there are, nil while that is not known. It does not block.
func (n *nodeNames) all() []nodequery.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.table.State(time.Now()) != nil {
		return nil
	}
	nodes := make([]nodequery.Node, 0, len(n.table.Rows()))
	for _, node := range n.table.Rows() {
		nodes = append(nodes, node)
	}
	return nodes
}

package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/drain"
)

// leave makes a node of a pool that is being removed.
func leave(t *testing.T, name, pool string) {
	t.Helper()
	nodes := apiServer.Client().CoreV1().Nodes()
	_, err := nodes.Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{cluster.LabelPool: pool}}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, nodes.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
	})
	drainer := &drain.Drainer{Client: apiServer.Client(), Now: time.Now}
	require.NoError(t, drainer.Taint(t.Context(), name, "down-1"))
	require.NoError(t, drainer.Cordon(t.Context(), name))
}

// takesPods reports whether a node is schedulable.
func takesPods(t *testing.T, name string) bool {
	t.Helper()
	node, err := apiServer.Client().CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	_, marked := drain.MarkOf(node)
	return !marked && !node.Spec.Unschedulable
}

func TestADeletedPoolLeavesNothingOnItsNodes(t *testing.T) {
	b := newBench(t)
	pool, other := b.create("deleted"), b.create("stays")
	one, two := next(b, b.made), next(b, b.made)
	if one.options.Name == other.Name {
		one = two
	}
	leave(t, "of-deleted", pool.Name)
	leave(t, "of-stays", other.Name)
	require.NoError(t, b.client.Delete(t.Context(), pool))
	next(b, one.ended)
	assert.Equal(t, pool.Name, next(b, b.forgot))
	b.eventually(func() bool { return takesPods(t, "of-deleted") })
	assert.False(t, takesPods(t, "of-stays"), "its removal goes on")
}

func TestAPoolThatWasDeletedMeanwhileLeavesNothingOnItsNodes(t *testing.T) {
	leave(t, "of-gone", "gone")
	b := newBench(t)
	b.eventually(func() bool { return takesPods(t, "of-gone") })
}

package objectcache

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// nodeAPI is an API of Nodes that can be down, or slow to list.
type nodeAPI struct {
	mu    sync.Mutex
	down  bool
	slow  chan struct{} // lists wait for it
	nodes []corev1.Node
	lists int
	watch *watch.FakeWatcher
}

func (a *nodeAPI) set(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

func (a *nodeAPI) List(ctx context.Context, _ metav1.ListOptions) (*corev1.NodeList, error) {
	a.mu.Lock()
	slow := a.slow
	a.mu.Unlock()
	if slow != nil {
		select {
		case <-slow:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, syscall.ECONNREFUSED
	}
	a.lists++
	return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: a.nodes}, nil
}

func (a *nodeAPI) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.down:
		return nil, syscall.ECONNREFUSED
	case o.SendInitialEvents != nil:
		return nil, apierrors.NewMethodNotSupported(corev1.Resource("nodes"), "watch-list")
	}
	a.watch = watch.NewFake()
	return a.watch, nil
}

// After a long outage what was seen before it is not trusted until everything has been listed: a
// watch that begins says nothing of what has gone meanwhile.
func TestOutagesEndWithAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &nodeAPI{nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}}
		var mu sync.Mutex
		nodes := New(Options[types.NamespacedName, *corev1.Node, string]{
			What: "nodes", Lock: &mu, Now: time.Now, Key: NameOf[*corev1.Node],
			Keep: func(n *corev1.Node) (string, bool) { return n.Name, true },
		})
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		state := func() error {
			mu.Lock()
			defer mu.Unlock()
			return nodes.State(time.Now())
		}
		require.ErrorIs(t, state(), ErrUnsynced)
		ctx, cancel := context.WithCancel(t.Context())
		var reflector sync.WaitGroup
		reflector.Go(func() { Reflect(ctx, nil, nodes, &corev1.Node{}, api) })
		defer reflector.Wait()
		defer cancel()
		outage := func(d time.Duration, meanwhile func()) {
			api.set(func() { api.down = true; api.watch.Stop() })
			pass(d)
			api.set(func() { api.down = false; meanwhile() })
		}
		pass(time.Minute)
		require.NoError(t, state())
		require.Equal(t, 1, api.lists)

		outage(5*time.Second, func() {}) // the reflector tries again within twenty, whatever it draws
		pass(MaxOutage)
		require.NoError(t, state())
		require.Equal(t, 1, api.lists, "a short one ends with a watch")

		slow := make(chan struct{})
		outage(5*time.Minute, func() {
			require.Error(t, state())
			api.nodes, api.slow = nil, slow
		})
		pass(2 * time.Minute)
		require.ErrorContains(t, state(), "nodes: out of touch", "nothing has been listed yet")
		close(slow)
		pass(time.Minute)
		require.NoError(t, state())
		require.Empty(t, nodes.Rows())
		require.Equal(t, 2, api.lists)
	})
}

package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/nodepool/state/kubernetes"
	"github.com/foresail/foresail/nodepool/state/statetest"
	"github.com/foresail/foresail/test/env/controlplane"
)

func start(t *testing.T) *controlplane.Cluster {
	t.Helper()
	c := controlplane.BorrowFor(t)
	crd, err := os.ReadFile("../../../manifests/crds/foresail.dev_workerpools.yaml")
	require.NoError(t, err)
	_, err = c.Apply(t.Context(), crd)
	require.NoError(t, err)
	return c
}

func pools(c *controlplane.Cluster) dynamic.ResourceInterface {
	return c.Dynamic().Resource(v1alpha1.GroupVersion.WithResource("workerpools"))
}

func create(t *testing.T, c *controlplane.Cluster, name string) {
	t.Helper()
	_, err := pools(c).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       "WorkerPool",
		"metadata":   map[string]any{"name": name},
		"spec": map[string]any{"min": int64(1), "max": int64(3),
			"provider": map[string]any{"simulated": map[string]any{}}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func open(t *testing.T, c *controlplane.Cluster, wrap func(http.RoundTripper) http.RoundTripper) *kubernetes.Store {
	t.Helper()
	config := c.RESTConfig()
	config.QPS = -1 // racing writers wait for each other at the server
	config.Wrap(wrap)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	return kubernetes.New(client.RESTClient())
}

func through(transport http.RoundTripper) http.RoundTripper { return transport }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestStore(t *testing.T) {
	c := start(t)
	t.Run("suite", func(t *testing.T) {
		statetest.Run(t, func(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper, names ...string) state.Store {
			for _, name := range names {
				create(t, c, name)
			}
			return open(t, c, wrap)
		})
	})
	t.Run("others keep their fields", func(t *testing.T) { testOthersKeepTheirFields(t, c) })
	t.Run("a pool that is not there", func(t *testing.T) { testNoPool(t, c) })
	t.Run("a recreated pool", func(t *testing.T) { testRecreated(t, c) })
	t.Run("what the manifests grant", func(t *testing.T) { testPermissions(t, c) })
	t.Run("a journal that cannot be read", func(t *testing.T) { testBroken(t, c) })
}

// patchStatus writes the status as those are asked to who tell people of the pool.
func patchStatus(ctx context.Context, c *controlplane.Cluster, name string, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = pools(c).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// testOthersKeepTheirFields patches the status between each read of the object and its write.
func testOthersKeepTheirFields(t *testing.T, c *controlplane.Cluster) {
	create(t, c, "shared")
	var overtaken atomic.Int64
	store := open(t, c, func(transport http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if n := overtaken.Load(); request.Method == http.MethodPut && n < 3 {
				overtaken.Add(1)
				if err := patchStatus(request.Context(), c, "shared",
					map[string]any{"workers": n + 5, "desired": n + 6}); err != nil {
					return nil, err
				}
			}
			return transport.RoundTrip(request)
		})
	})
	want, err := store.Save(t.Context(), "shared", state.Record{Owner: "me"})
	require.NoError(t, err)
	assert.EqualValues(t, 3, overtaken.Load())

	pool, err := pools(c).Get(t.Context(), "shared", metav1.GetOptions{})
	require.NoError(t, err)
	status := pool.Object["status"].(map[string]any)
	assert.Equal(t, map[string]any{"workers": int64(7), "desired": int64(8),
		"journal": map[string]any{"version": int64(1), "owner": "me"}}, status)
	require.NoError(t, patchStatus(t.Context(), c, "shared", map[string]any{"workers": nil, "desired": 9}))
	loaded, err := store.Load(t.Context(), "shared")
	require.NoError(t, err)
	assert.Equal(t, want, loaded)
}

func testNoPool(t *testing.T, c *controlplane.Cluster) {
	store := open(t, c, through)
	_, err := store.Load(t.Context(), "missing")
	assert.True(t, apierrors.IsNotFound(err), err)
	assert.ErrorContains(t, err, "missing")
	_, err = store.Save(t.Context(), "missing", state.Record{})
	assert.True(t, apierrors.IsNotFound(err), err)
	assert.NotErrorIs(t, err, state.ErrConflict)
}

// testRecreated has a pool deleted and created again that comes to the same version: the journal is of another pool.
func testRecreated(t *testing.T, c *controlplane.Cluster) {
	create(t, c, "recreated")
	old, other := open(t, c, through), open(t, c, through)
	_, err := old.Load(t.Context(), "recreated")
	require.NoError(t, err)
	stale, err := old.Save(t.Context(), "recreated", state.Record{Owner: "old"})
	require.NoError(t, err)

	require.NoError(t, pools(c).Delete(t.Context(), "recreated", metav1.DeleteOptions{}))
	create(t, c, "recreated")
	fresh, err := other.Save(t.Context(), "recreated", state.Record{Owner: "new"})
	require.NoError(t, err)
	require.Equal(t, stale.Version, fresh.Version)

	_, err = old.Save(t.Context(), "recreated", stale)
	require.ErrorContains(t, err, "recreated since")
	require.NotErrorIs(t, err, state.ErrConflict)
	loaded, err := old.Load(t.Context(), "recreated")
	require.NoError(t, err)
	assert.Equal(t, fresh, loaded)
	_, err = old.Save(t.Context(), "recreated", loaded)
	assert.NoError(t, err, "once it has been loaded it may be written")
}

// testPermissions has the ServiceAccount of the manifests keep a journal.
func testPermissions(t *testing.T, c *controlplane.Cluster) {
	create(t, c, "granted")
	config, err := c.RESTConfigFor("system:serviceaccount:foresail-system:foresail", "system:serviceaccounts")
	require.NoError(t, err)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	store := kubernetes.New(client.RESTClient())
	_, err = store.Load(t.Context(), "granted")
	require.True(t, apierrors.IsForbidden(err), err)

	roles, err := os.ReadFile("../../../manifests/components/nodepool/rbac.yaml")
	require.NoError(t, err)
	_, err = c.Apply(t.Context(), roles)
	require.NoError(t, err)
	require.EventuallyWithT(t, func(t *assert.CollectT) { // the authorizer watches roles
		_, err := store.Load(context.Background(), "granted")
		require.NoError(t, err)
	}, time.Minute, 50*time.Millisecond)
	r, err := store.Save(t.Context(), "granted", state.Record{Owner: "me"})
	require.NoError(t, err)
	loaded, err := store.Load(t.Context(), "granted")
	require.NoError(t, err)
	assert.Equal(t, r, loaded)
}

// testBroken holds the store to leave a journal alone that it does not understand.
func testBroken(t *testing.T, c *controlplane.Cluster) {
	for i, journal := range []map[string]any{{"version": 1, "owner": "", "fromTheFuture": true}, {"owner": "a"}} {
		name := fmt.Sprintf("broken-%d", i)
		create(t, c, name)
		require.NoError(t, patchStatus(t.Context(), c, name, map[string]any{"journal": journal}))
		store := open(t, c, through)
		_, err := store.Load(t.Context(), name)
		assert.ErrorContains(t, err, "status.journal: decode the journal: ")
		_, err = store.Save(t.Context(), name, state.Record{})
		assert.ErrorContains(t, err, "status.journal: decode the journal: ")
		assert.NotErrorIs(t, err, state.ErrConflict)
	}
}

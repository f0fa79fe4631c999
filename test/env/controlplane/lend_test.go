package controlplane

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestBorrowersFindNothingOfEachOther checks that each borrower gets a server without objects of
// the previous one.
func TestBorrowersFindNothingOfEachOther(t *testing.T) {
	err := Lend(t.Context(), os.Stderr, func(_ context.Context, variable string) error {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
		t.Run("one", borrow)
		t.Run("two", borrow)
		t.Run("three", borrow)
		return nil
	})
	require.NoError(t, err)
}

// borrow expects a new API server, and leaves as much behind as it can.
func borrow(t *testing.T) {
	pools := schema.GroupVersionResource{Group: "foresail.dev", Version: "v1alpha1", Resource: "workerpools"}
	definition, err := os.ReadFile("../../../manifests/crds/foresail.dev_workerpools.yaml")
	require.NoError(t, err)

	c := BorrowFor(t)
	_, err = c.Dynamic().Resource(pools).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	namespaces, err := c.Client().CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, namespaces.Items, 4, "those of Kubernetes")
	view, err := c.Client().RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotContains(t, view.Labels, "changed")

	_, err = c.Apply(t.Context(), definition)
	require.NoError(t, err)
	pool, err := c.Apply(t.Context(), []byte(`{"apiVersion": "foresail.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": "left", "finalizers": ["example.com/kept"]},
				"spec": {"min": 1, "max": 2, "provider": {"simulated": {}}}}`))
	require.NoError(t, err)
	require.Len(t, pool, 1)
	_, err = c.Client().CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "left"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.Client().CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "left"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	view.Labels["changed"] = "true"
	_, err = c.Client().RbacV1().ClusterRoles().Update(t.Context(), view, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.Client().RbacV1().ClusterRoles().Delete(t.Context(), "edit", metav1.DeleteOptions{}))
	_, err = c.Client().RbacV1().ClusterRoles().Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "left"}}, metav1.CreateOptions{})
	require.NoError(t, err)

	kubeconfig, err := c.KubeconfigFor("ann")
	require.NoError(t, err)
	assert.FileExists(t, kubeconfig)
}

func TestBorrowSaysWhatIsWrongWithTheFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	t.Setenv(LentEnv, missing)
	_, _, err := Borrow(t.Context(), os.Stderr)
	require.ErrorContains(t, err, LentEnv+`="`+missing+`"`)
}

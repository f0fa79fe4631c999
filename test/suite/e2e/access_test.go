package e2e

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/env/stack"
)

// TestUnauthorisedClientsAreForbidden asks the adapter itself, past the API server, as different users.
func TestUnauthorisedClientsAreForbidden(t *testing.T) {
	t.Parallel()
	app := newApp("access", "app", "predicted_load_total")
	deploy(t, app)
	grantExternalMetrics(t, "reader")

	ask := func(config *rest.Config) error {
		config.Host = "https://" + net.JoinHostPort("localhost", strconv.Itoa(adapter.SecurePort))
		client, err := externalmetrics.NewForConfig(config)
		require.NoError(t, err)
		_, err = stack.ReadMetric(client, app)
		return err
	}
	user := func(name string) *rest.Config {
		config, err := shared.Cluster.RESTConfigFor(name)
		require.NoError(t, err)
		return config
	}
	require.NoError(t, ask(user("reader")))
	err := ask(user("stranger"))
	assert.True(t, apierrors.IsForbidden(err), "a user without the right: %v", err)
	assert.ErrorContains(t, err, "stranger")

	anonymous := rest.AnonymousClientConfig(user("reader"))
	err = ask(anonymous)
	assert.True(t, apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err), "nobody: %v", err)

	forged := rest.AnonymousClientConfig(user("reader"))
	forged.BearerToken = "no-such-token"
	err = ask(forged)
	assert.True(t, apierrors.IsUnauthorized(err), "a made-up token: %v", err)
}

// grantExternalMetrics lets a user read external metrics everywhere, and waits until the API server
// knows: it may see the binding before the role.
func grantExternalMetrics(t *testing.T, user string) {
	t.Helper()
	name := "external-metrics-" + user
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"external.metrics.k8s.io"}, Resources: []string{"*"},
			Verbs: []string{"get", "list"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	rbac := shared.Cluster.Client().RbacV1()
	if _, err := rbac.ClusterRoles().Create(t.Context(), role,
		metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	if _, err := rbac.ClusterRoleBindings().Create(t.Context(), binding,
		metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list",
			Group: "external.metrics.k8s.io", Resource: "any", Namespace: "any"},
	}}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := shared.Cluster.Client().AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review,
			metav1.CreateOptions{})
		require.NoError(c, err)
		assert.True(c, answer.Status.Allowed, answer.Status.Reason)
	}, 10*time.Second, 50*time.Millisecond)
}

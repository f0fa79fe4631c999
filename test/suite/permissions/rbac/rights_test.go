package rbac

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	me     = "system:serviceaccount:here:me"
	other  = "system:serviceaccount:here:other"
	system = "system:auth-delegator"
)

const manifest = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: wide}
rules:
- {apiGroups: [""], resources: [pods, nodes], verbs: [list, watch]}
- {apiGroups: ["*"], resources: ["*/scale"], verbs: [get]}
- {nonResourceURLs: [/pages/*], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: wide}
roleRef: {kind: ClusterRole, name: wide}
subjects: [{kind: ServiceAccount, name: me, namespace: here}]
---
kind: Service
metadata: {name: neither}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: narrow, namespace: here}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [a, b], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: narrow, namespace: here}
roleRef: {kind: Role, name: narrow}
subjects: [{kind: ServiceAccount, name: me, namespace: here}, {kind: User, name: ann}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: foreign}
roleRef: {kind: ClusterRole, name: "system:auth-delegator"}
subjects: [{kind: ServiceAccount, name: me, namespace: here}]
`

// delegator is what Kubernetes brings along.
func delegator(ref rbacv1.RoleRef, _ string) ([]rbacv1.PolicyRule, error) {
	if ref.Name != system {
		return nil, errors.New(ref.Name + " is unknown")
	}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"},
			Verbs: []string{"create"}},
	}, nil
}

func TestRightsAreOneVerbOfOneResource(t *testing.T) {
	rights, err := Granted(delegator, []byte(manifest))
	require.NoError(t, err)
	var mine, anns []string
	for _, r := range rights {
		switch r.User {
		case me:
			mine = append(mine, r.String())
		case "ann":
			anns = append(anns, r.String())
		}
	}
	assert.Equal(t, []string{
		"ClusterRole wide: list pods", "ClusterRole wide: watch pods", "ClusterRole wide: list nodes",
		"ClusterRole wide: watch nodes",
		"ClusterRole wide: get */scale.*", "ClusterRole wide: get /pages/*",
		"Role narrow: update leases.coordination.k8s.io a", "Role narrow: update leases.coordination.k8s.io b",
		"ClusterRole system:auth-delegator",
	}, mine)
	assert.Len(t, anns, 2)

	_, err = Granted(func(rbacv1.RoleRef, string) ([]rbacv1.PolicyRule,
		error) {
		return nil, errors.New("no such role")
	}, []byte(manifest))
	require.EqualError(t, err, "no such role")
	_, err = Granted(delegator, []byte("a: [b"))
	require.ErrorContains(t, err, "manifest: ")
}

func TestRightsCoverRequests(t *testing.T) {
	rights, err := Granted(delegator, []byte(manifest))
	require.NoError(t, err)
	for _, c := range []struct {
		request Request
		want    string // "" for none
	}{
		{Request{User: me, Verb: "list", Resource: "pods", Namespace: "anywhere"}, "ClusterRole wide: list pods"},
		{Request{User: me, Verb: "list", Resource: "pods", Name: "one"}, "ClusterRole wide: list pods"},
		{Request{User: other, Verb: "list", Resource: "pods"}, ""},
		{Request{User: me, Verb: "get", Resource: "pods"}, ""},
		{Request{User: me, Verb: "list", Group: "metrics.k8s.io", Resource: "pods"}, ""},
		{Request{User: me, Verb: "list", Resource: "pods/log"}, ""},
		{Request{User: me, Verb: "get", Group: "apps", Resource: "deployments/scale", Namespace: "a", Name: "b"},
			"ClusterRole wide: get */scale.*"},
		{Request{User: me, Verb: "get", Group: "apps", Resource: "deployments", Namespace: "a", Name: "b"}, ""},
		{Request{User: me, Verb: "get", Group: "apps", Resource: "scale", Namespace: "a", Name: "b"}, ""},
		{Request{User: me, Verb: "get", Path: "/pages/one"}, "ClusterRole wide: get /pages/*"},
		{Request{User: me, Verb: "get", Path: "/page"}, ""},
		{Request{User: me, Verb: "post", Path: "/pages/one"}, ""},
		{Request{User: me, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "here",
			Name: "b"}, "Role narrow: update leases.coordination.k8s.io b"},
		{Request{User: me, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "there",
			Name: "b"}, ""},
		{Request{User: me, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "here",
			Name: "c"}, ""},
		{Request{User: me, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "here"}, ""},
		{Request{User: me, Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
			"ClusterRole " + system},
	} {
		var covers []string
		for _, right := range rights {
			if right.Covers(c.request) {
				covers = append(covers, right.String())
			}
		}
		if c.want == "" {
			assert.Empty(t, covers, c.request)
		} else {
			assert.Equal(t, []string{c.want}, covers, c.request)
		}
	}
}

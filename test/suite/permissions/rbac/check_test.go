package rbac

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const small = `
kind: ClusterRole
metadata: {name: small}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, delete]}
---
kind: ClusterRoleBinding
metadata: {name: small}
roleRef: {kind: ClusterRole, name: small}
subjects: [{kind: ServiceAccount, name: me, namespace: here}]
`

func TestWhatIsWrongIsNamed(t *testing.T) {
	rights, err := Granted(delegator, []byte(small))
	require.NoError(t, err)
	request := func(verb string, forbidden bool) Request {
		return Request{User: me, Verb: verb, Resource: "pods", Namespace: "a", Name: "b", Forbidden: forbidden}
	}
	get, remove, list := request("get", false), request("delete", false), request("list", true)
	const theDelete = "ClusterRole small: delete pods"
	for name, c := range map[string]struct {
		suite    Suite
		requests []Request
		part     bool
		want     string // "" for nothing
	}{
		"all is used": {requests: []Request{get, remove}},
		"a right is unused": {requests: []Request{get},
			want: "no test uses " + theDelete + ": take it out of the manifests, or give a reason"},
		"a right is unused in a part": {requests: []Request{get}, part: true},
		"a right was taken away":      {requests: []Request{get, remove, request("delete", true)}},
		"a right is used in vain": {requests: []Request{get, request("delete", true)},
			want: "no test uses " + theDelete + ": take it out of the manifests, or give a reason"},
		"a right is missing": {requests: []Request{get, remove, list},
			want: "forbidden: " + me + ": list pods b in a; no role grants it"},
		"a right is missing in a part": {requests: []Request{list}, part: true,
			want: "forbidden: " + me + ": list pods b in a; no role grants it"},
		"unused with a reason": {suite: Suite{Unused: map[string]string{theDelete: "rare"}},
			requests: []Request{get}},
		"used at times, and not now": {suite: Suite{Rare: map[string]string{theDelete: "rare"}},
			requests: []Request{get}},
		"used at times, and now": {suite: Suite{Rare: map[string]string{theDelete: "rare"}},
			requests: []Request{get, remove}},
		"used with a reason why not": {suite: Suite{Unused: map[string]string{theDelete: "rare"}},
			requests: []Request{get, remove}, want: theDelete + " is expected to be unused (rare), and was used"},
		"a reason without a right": {
			suite: Suite{Proves: []string{"file"},
				Unused: map[string]string{"ClusterRole small: patch pods": "rare"}}, requests: []Request{get, remove},
			want: "ClusterRole small: patch pods has a reason to be unused, and is no right of file",
		},
	} {
		err := c.suite.check(rights, nil, c.requests, !c.part)
		if c.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.EqualError(t, err, c.want, name)
		}
	}
}

func TestNamespacesThatStandForAnother(t *testing.T) {
	rights, err := Granted(delegator, []byte(manifest))
	require.NoError(t, err)
	request := Request{User: me, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "there",
		Name: "b", Forbidden: true}
	require.Error(t, Suite{}.check(nil, rights, []Request{request}, false))
	require.NoError(t, Suite{Namespace: func(string) string { return "here" }}.check(nil, rights, []Request{request},
		false))
}

package rbac

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// line is an event of the log, of which more says what differs.
func line(uri, verb, more string) string {
	return `{"requestURI":"` + uri + `","verb":"` + verb + `","user":{"username":"` + me + `"}` + more + `}` + "\n"
}

const (
	allow  = `,"annotations":{"authorization.k8s.io/decision":"allow"}`
	forbid = `,"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}`
)

func TestRequestsOfALog(t *testing.T) {
	const pods = `,"objectRef":{"resource":"pods","namespace":"a","apiVersion":"v1"}`
	const named = `,"objectRef":{"resource":"secrets","namespace":"a","name":"one","apiVersion":"v1"}`
	const review = `{"kind":"SubjectAccessReview","spec":{"user":"` + me + `","groups":["system:serviceaccounts"],%s},"status":{"allowed":%s}}`
	reviewed := func(attributes, allowed string) string {
		object := strings.Replace(strings.Replace(review, "%s", attributes, 1), "%s", allowed, 1)
		return `{"requestURI":"/","verb":"create","user":{"username":"adapter"},"requestObject":{},"responseObject":` + object + "}\n"
	}
	for name, c := range map[string]struct {
		log  string
		want []Request
	}{
		"a list": {line("/", "list", pods+allow),
			[]Request{{User: me, Verb: "list", Resource: "pods", Namespace: "a"}}},
		"one name": {line("/?fieldSelector=metadata.name%3Done", "watch", named+allow),
			[]Request{{User: me, Verb: "watch", Resource: "secrets", Namespace: "a", Name: "one"}}},
		"the same again": {
			line("/", "list", pods+allow) + line("/", "list",
				pods+allow), []Request{{User: me, Verb: "list", Resource: "pods", Namespace: "a"}},
		},
		"a subresource": {
			line("/", "create", `,"objectRef":{"resource":"pods","subresource":"eviction","name":"b","namespace":"a"}`+allow),
			[]Request{{User: me, Verb: "create", Resource: "pods/eviction", Namespace: "a", Name: "b"}},
		},
		"a watch in the place of a list": {
			line("/api/v1/pods?sendInitialEvents=true&watch=true", "watch", pods+allow),
			[]Request{{User: me, Verb: "watch", Resource: "pods", Namespace: "a"},
				{User: me, Verb: "list", Resource: "pods", Namespace: "a"}},
		},
		"an object that was created by a patch": {
			line("/", "patch", named+`,"responseStatus":{"code":201}`+allow),
			[]Request{{User: me, Verb: "patch", Resource: "secrets", Namespace: "a", Name: "one"},
				{User: me, Verb: "create", Resource: "secrets", Namespace: "a", Name: "one"}},
		},
		"an object that was patched": {
			line("/", "patch", named+`,"responseStatus":{"code":200}`+allow), []Request{{User: me, Verb: "patch",
				Resource: "secrets", Namespace: "a", Name: "one"}},
		},
		"a path": {line("/apis?a=b", "get", allow), []Request{{User: me, Verb: "get", Path: "/apis"}}},
		"forbidden": {line("/", "list", pods+forbid),
			[]Request{{User: me, Verb: "list", Resource: "pods", Namespace: "a", Forbidden: true}}},
		"refused by a quota": {line("/", "create", pods+`,"responseStatus":{"code":403}`+allow),
			[]Request{{User: me, Verb: "create", Resource: "pods", Namespace: "a"}}},
		"asked about": {
			reviewed(`"resourceAttributes":{"verb":"list","group":"external.metrics.k8s.io","resource":"load","namespace":"a"}`, "true"),
			[]Request{{User: me, Verb: "list", Group: "external.metrics.k8s.io", Resource: "load", Namespace: "a"}},
		},
		"asked about, in vain": {
			reviewed(`"nonResourceAttributes":{"verb":"get","path":"/metrics"}`,
				"false"), []Request{{User: me, Verb: "get", Path: "/metrics", Forbidden: true}},
		},
		"asked about a user": {strings.Replace(reviewed(`"resourceAttributes":{}`, "true"),
			"system:serviceaccounts", "people", 1), nil},
		"a line that has no end":    {strings.TrimSuffix(line("/", "list", pods), "}\n"), nil},
		"a request of a person":     {strings.Replace(line("/", "list", pods), me, "ann", 1), nil},
		"a question with no answer": {`{"requestURI":"/","verb":"create","user":{"username":"adapter"},"requestObject":{}}` + "\n", nil},
	} {
		got, err := ReadLog(strings.NewReader(c.log))
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
	_, err := ReadLog(strings.NewReader(line("/", "list", pods) + "{\n"))
	require.ErrorContains(t, err, "audit log, line 2: ")
}

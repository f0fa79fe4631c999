package rbac

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Policy is the audit policy of the API server of a [Suite].
//
//go:embed policy.yaml
var Policy []byte

// Request is something that a service account asked for, of the API server or of a server that asks
// the cluster about it.
type Request struct {
	User      string
	Namespace string // "" for requests of all namespaces, of objects without one, and of paths
	Verb      string
	Group     string
	Resource  string // with a subresource, such as pods/eviction; "" for a path
	Name      string // "" for requests of any
	Path      string // that is no resource
	Forbidden bool
}

// rule is the narrowest rule that allows the request.
func (r Request) rule() rbacv1.PolicyRule {
	if r.Resource == "" {
		return rbacv1.PolicyRule{Verbs: []string{r.Verb}, NonResourceURLs: []string{r.Path}}
	}
	rule := rbacv1.PolicyRule{Verbs: []string{r.Verb}, APIGroups: []string{r.Group}, Resources: []string{r.Resource}}
	if r.Name != "" {
		rule.ResourceNames = []string{r.Name}
	}
	return rule
}

func (r Request) String() string {
	text := r.User + ": " + describe(r.rule())
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// ReadLog returns the different requests of a log that was written by [Policy], in the order in
// which they are first there.
func ReadLog(log io.Reader) ([]Request, error) {
	var found []Request
	known := map[Request]bool{}
	lines := bufio.NewReader(log)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return found, nil // a line without an end is still being written
		}
		if err != nil {
			return nil, err
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("audit log, line %d: %w", number, err)
		}
		requests, err := requestsOf(&event)
		if err != nil {
			return nil, fmt.Errorf("audit log, line %d: %w", number, err)
		}
		for _, r := range requests {
			if !known[r] {
				known[r] = true
				found = append(found, r)
			}
		}
	}
}

// requestsOf returns what the API server authorized for one event.
func requestsOf(event *auditv1.Event) ([]Request, error) {
	var found []Request
	if event.RequestObject != nil {
		asked, err := reviewed(event)
		if err != nil {
			return nil, err
		}
		found = asked
	}
	if !strings.HasPrefix(event.User.Username, "system:serviceaccount:") {
		return found, nil
	}
	at, err := url.Parse(event.RequestURI)
	if err != nil {
		return nil, err
	}
	// Other refusals with status 403 are those of admission, such as in a namespace that is being deleted.
	r := Request{
		User: event.User.Username, Verb: event.Verb,
		Forbidden: event.Annotations["authorization.k8s.io/decision"] == "forbid",
	}
	ref := event.ObjectRef
	if ref == nil {
		r.Path = at.Path
		return append(found, r), nil
	}
	r.Group, r.Resource, r.Namespace, r.Name = ref.APIGroup, resource(ref.Resource,
		ref.Subresource), ref.Namespace, ref.Name
	found = append(found, r)
	for _, verb := range implied(event, at.Query()) {
		r.Verb = verb
		found = append(found, r)
	}
	return found, nil
}

// implied returns the further verbs that a request stands for.
func implied(event *auditv1.Event, query url.Values) []string {
	created := event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusCreated
	switch {
	case event.Verb == "watch" && query.Get("sendInitialEvents") == "true":
		// Where the API server does not know such watches, clients list first.
		return []string{"list"}
	case (event.Verb == "patch" || event.Verb == "update") && created:
		// The API server asks for the right before it creates an object that is applied.
		return []string{"create"}
	}
	return nil
}

// reviewed returns what a server asked the cluster about a service account.
func reviewed(event *auditv1.Event) ([]Request, error) {
	if event.ResponseObject == nil {
		return nil, nil
	}
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(event.ResponseObject.Raw, &review); err != nil {
		return nil, err
	}
	if !slices.Contains(review.Spec.Groups, "system:serviceaccounts") {
		return nil, nil
	}
	r := Request{User: review.Spec.User, Forbidden: !review.Status.Allowed}
	if at := review.Spec.NonResourceAttributes; at != nil {
		r.Verb, r.Path = at.Verb, at.Path
	}
	if at := review.Spec.ResourceAttributes; at != nil {
		r.Verb, r.Group, r.Resource, r.Namespace, r.Name = at.Verb, at.Group, resource(at.Resource,
			at.Subresource), at.Namespace, at.Name
	}
	return []Request{r}, nil
}

func resource(name, subresource string) string {
	if subresource == "" {
		return name
	}
	return name + "/" + subresource
}

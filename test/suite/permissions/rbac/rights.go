package rbac

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Right is one verb of one resource, or of one path, that manifests grant to a service account. A
// role that Kubernetes brings along cannot be made narrower: it is granted as one right.
type Right struct {
	User      string
	Role      string // its kind and name, such as ClusterRole foresail
	Namespace string // in which it holds; "" for everywhere
	// Rules allow what the right allows: one with one verb, group, resource and name at most, or
	// those of a role of Kubernetes.
	Rules []rbacv1.PolicyRule
}

// String names the right within a suite.
func (r Right) String() string {
	if len(r.Rules) != 1 {
		return r.Role
	}
	return r.Role + ": " + describe(r.Rules[0])
}

// Covers tells whether a request needs no other right.
func (r Right) Covers(request Request) bool {
	if r.User != request.User || r.Namespace != "" && r.Namespace != request.Namespace {
		return false
	}
	covers, _ := validation.Covers(r.Rules, []rbacv1.PolicyRule{request.rule()})
	return covers
}

// describe writes an atomic rule as kubectl writes resources: patch
// workerpools/status.foresail.dev, perhaps with a name.
func describe(rule rbacv1.PolicyRule) string {
	words := slices.Concat(rule.Verbs, rule.NonResourceURLs)
	for i, name := range rule.Resources {
		if group := rule.APIGroups[i]; group != "" {
			name += "." + group
		}
		words = append(words, name)
	}
	return strings.Join(append(words, rule.ResourceNames...), " ")
}

// lookUp returns the rules of a role that is bound in a namespace, or in none.
type lookUp func(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error)

// Granted returns the rights of service accounts by some manifests. Roles that are bound there and
// defined elsewhere are looked up.
func Granted(elsewhere lookUp, manifests ...[]byte) ([]Right, error) {
	all := documents{roles: map[roleKey][]rbacv1.PolicyRule{}}
	for _, manifest := range manifests {
		if err := all.read(manifest); err != nil {
			return nil, err
		}
	}
	var rights []Right
	for _, b := range all.bindings {
		key := roleKey{kind: b.ref.Kind, name: b.ref.Name}
		if b.ref.Kind == "Role" {
			key.namespace = b.namespace
		}
		atoms := [][]rbacv1.PolicyRule{}
		rules, defined := all.roles[key]
		for _, rule := range rules {
			for _, atom := range validation.BreakdownRule(rule) {
				atoms = append(atoms, []rbacv1.PolicyRule{atom})
			}
		}
		if !defined {
			rules, err := elsewhere(b.ref, b.namespace)
			if err != nil {
				return nil, err
			}
			atoms = append(atoms, rules)
		}
		for _, subject := range b.subjects {
			for _, atom := range atoms {
				rights = append(rights, Right{User: userOf(subject), Role: b.ref.Kind + " " + b.ref.Name,
					Namespace: b.namespace, Rules: atom})
			}
		}
	}
	return rights, nil
}

func userOf(s rbacv1.Subject) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return "system:serviceaccount:" + s.Namespace + ":" + s.Name
	}
	return s.Name
}

// documents are the roles and bindings of manifests.
type documents struct {
	roles    map[roleKey][]rbacv1.PolicyRule
	bindings []binding
}

type roleKey struct{ kind, namespace, name string }

type binding struct {
	namespace string // "" of a ClusterRoleBinding
	ref       rbacv1.RoleRef
	subjects  []rbacv1.Subject
}

// read adds the documents of one manifest. Those of other kinds are left out.
func (d *documents) read(manifest []byte) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		var document struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Rules             []rbacv1.PolicyRule `json:"rules"`
			RoleRef           rbacv1.RoleRef      `json:"roleRef"`
			Subjects          []rbacv1.Subject    `json:"subjects"`
		}
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
		switch document.Kind {
		case "Role", "ClusterRole":
			d.roles[roleKey{document.Kind, document.Namespace, document.Name}] = document.Rules
		case "RoleBinding", "ClusterRoleBinding":
			d.bindings = append(d.bindings, binding{document.Namespace, document.RoleRef, document.Subjects})
		}
	}
}

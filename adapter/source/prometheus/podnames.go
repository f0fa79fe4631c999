package prometheus

import (
	"regexp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kubernetes makes the random ends of names of these characters, and pod template hashes of the
// first: each digit of a number has one.
const (
	hashCharacters   = "[456789bcdf]"
	randomCharacters = "[bcdfghjklmnpqrstvwxz2456789]"
)

// podNames returns a regular expression of the names that the pods of a target have and had,
// whatever became of them. It returns false for kinds whose pods may have any name.
//
// A hash has as many characters as a number below 2³² has digits. Of all hashes one in 40,000 has
// fewer than six; a shorter part of a name is rather that of another object.
func podNames(kind schema.GroupKind, name string) (string, bool) {
	own := regexp.QuoteMeta(name)
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}:
		return own + "-" + hashCharacters + "{6,10}-" + randomCharacters + "{5}", true
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}:
		return own + "-" + randomCharacters + "{5}", true
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		return own + "-[0-9]+", true
	}
	return "", false
}

package instances

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// record is a pod reduced to what this package reads, which is a small part even of an empty corev1.Pod: a cluster may
// have a hundred thousand.
type record struct {
	key    types.NamespacedName
	status podStatus
}

func recordOf(p *corev1.Pod) *record {
	return &record{key: types.NamespacedName{Namespace: one(p.Namespace), Name: p.Name}, status: statusOf(p)}
}

// GetObjectMeta implements metav1.ObjectMetaAccessor, by which client-go finds the key.
func (r *record) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.key.Namespace, Name: r.key.Name}
}

// one returns a string equal to s that all that are equal share.
func one(s string) string { return unique.Make(s).Value() }

// shared returns a copy of labels or ports whose strings are shared with those of other pods.
func shared(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	out := make(map[string]string, len(labels))
	for name, value := range labels {
		out[one(name)] = one(value)
	}
	return out
}

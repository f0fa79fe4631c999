package scheduling

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func affinityTerms(s *corev1.PodSpec) []corev1.PodAffinityTerm {
	if s.Affinity == nil || s.Affinity.PodAffinity == nil {
		return nil
	}
	return s.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func antiAffinityTerms(s *corev1.PodSpec) []corev1.PodAffinityTerm {
	if s.Affinity == nil || s.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func addLabelsOfTerms(to map[string]bool, terms []corev1.PodAffinityTerm) {
	for i := range terms {
		addLabelsOf(to, terms[i].LabelSelector)
	}
}

func addLabelsOf(to map[string]bool, s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	for key := range s.MatchLabels {
		to[key] = true
	}
	for _, e := range s.MatchExpressions {
		to[e.Key] = true
	}
}

// selectorOf converts a selector that the API server has validated.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}

// honors reports whether a spread constraint excludes nodes by a policy with this default.
func honors(policy *corev1.NodeInclusionPolicy, otherwise bool) bool {
	if policy == nil {
		return otherwise
	}
	return *policy == corev1.NodeInclusionPolicyHonor
}

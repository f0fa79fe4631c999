package manifests_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// reachedFrom returns who reaches each port of the pods that run Foresail by the network policies;
// none are all.
func reachedFrom(t *testing.T, rendered []runtime.Object) map[string][]networkingv1.NetworkPolicyPeer {
	t.Helper()
	pods := template(t, rendered)
	sources := map[string][]networkingv1.NetworkPolicyPeer{}
	for _, policy := range all[*networkingv1.NetworkPolicy](rendered) {
		assert.Equal(t, pods.Labels, policy.Spec.PodSelector.MatchLabels, policy.Name)
		assert.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, policy.Spec.PolicyTypes,
			"what Foresail connects to is open")
		assert.Equal(t, "foresail-system", policy.Namespace)
		for _, rule := range policy.Spec.Ingress {
			require.NotEmpty(t, rule.Ports, "it would open all")
			for _, port := range rule.Ports {
				require.NotContains(t, sources, port.Port.StrVal, "what one rule closes another would open")
				sources[port.Port.StrVal] = rule.From
			}
		}
	}
	return sources
}

// TestPoliciesLeadToWhatIsServed holds policies to open every port that somebody else than a
// kubelet needs, and no other.
func TestPoliciesLeadToWhatIsServed(t *testing.T) {
	for _, folder := range []string{"base", "overlays/nodepool", "overlays/remote-write", "overlays/extender",
		"overlays/second-scheduler", "overlays/keda", "examples/combined"} {
		t.Run(folder, func(t *testing.T) {
			rendered := render(t, folder)
			sources := reachedFrom(t, rendered)
			var want []string
			for _, port := range template(t, rendered).Spec.Containers[0].Ports {
				if port.Name != "http" {
					want = append(want, port.Name)
				}
			}
			var found []string
			for name := range sources {
				found = append(found, name)
			}
			assert.ElementsMatch(t, want, found)
			assert.Empty(t, sources["https"], "API servers are at any address")
			assert.Equal(t, []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}},
				sources["metrics"], "pods of any namespace, and no others")
		})
	}
}

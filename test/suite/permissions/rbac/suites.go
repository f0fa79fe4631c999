package rbac

import "strings"

// accounts are those that Foresail itself runs as.
var accounts = []string{
	"system:serviceaccount:foresail-system:foresail",
	"system:serviceaccount:foresail-system:foresail-extender", // on a control plane
}

// enforced is why a right to delete is granted that nothing uses.
const enforced = "clusters that enforce owner references, such as OpenShift, ask for it before an owner is set"

// Suites is which suite answers for which roles.
var Suites = map[string]Suite{
	"test/suite/e2e": {
		Proves: []string{"base/rbac.yaml", "components/capacity-buffer/rbac.yaml"},
		Others: []string{"base/rbac-apiservice.yaml"},
		Rare: map[string]string{
			"ClusterRole foresail: patch events.events.k8s.io": "an event that recurs while its object stays the same is counted in the first one",
		},
	},
	"test/suite/apiservice": {
		Proves: []string{"base/rbac-apiservice.yaml", "components/custom-metrics/rbac.yaml"},
		Others: []string{"base/rbac.yaml"},
		Unused: map[string]string{
			"ClusterRole foresail-apiservice: delete apiservices.apiregistration.k8s.io v1beta1.external.metrics.k8s.io":   enforced,
			"ClusterRole foresail-custom-metrics: delete apiservices.apiregistration.k8s.io v1beta1.custom.metrics.k8s.io": enforced,
			"ClusterRole foresail-custom-metrics: delete apiservices.apiregistration.k8s.io v1beta2.custom.metrics.k8s.io": enforced,
		},
	},
	"test/suite/nodepool/live": {
		Proves: []string{"components/nodepool/rbac.yaml", "components/simulated-nodes/rbac.yaml"},
		Rare: map[string]string{
			"ClusterRole foresail-nodepool: patch events.events.k8s.io": "an event that recurs is counted in the first one",
		},
		Unused: map[string]string{
			"Role foresail-simulated-nodes: delete configmaps": "an instance is forgotten an hour after its end",
		},
		Namespace: ofTheCloud,
	},
	"test/suite/extender": {
		Proves: []string{"components/extender-rights/rbac.yaml", "overlays/extender/binding.yaml"},
		Others: []string{"components/nodepool/rbac.yaml", "components/simulated-nodes/rbac.yaml"},
		Unused: map[string]string{
			"ClusterRole system:auth-delegator": "metrics are served to anybody in that suite; foresail.TestRunOfTheExtenderAlone asks who reads them",
		},
		Namespace: ofTheCloud,
	},
	"test/suite/keda": {
		Proves: []string{"components/forward/rbac.yaml"},
		Others: []string{"base/rbac.yaml", "base/rbac-apiservice.yaml", "components/custom-metrics/rbac.yaml"},
	},
}

// ofTheCloud has the namespaces of simulated clouds stand for that of the manifests. Each pool has
// one of its own, with the same Role.
func ofTheCloud(namespace string) string {
	if strings.HasSuffix(namespace, "-cloud") {
		return "foresail-simulated"
	}
	return namespace
}

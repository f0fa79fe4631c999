package nodepool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// Pods wait for the end of a node that another program drains as long as it gets emptier, but not for one whose drain
// makes no progress: they get a node of their own.
func TestPodsDoNotWaitForADrainThatMakesNoProgress(t *testing.T) {
	for name, empty := range map[string]func(*corev1.Node){
		"Karpenter": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
		},
		"cluster-autoscaler": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
		},
		"kubectl drain": func(n *corev1.Node) { n.Spec.Unschedulable = true },
	} {
		t.Run(name, func(t *testing.T) {
			r := idle(t, 1)
			web := &workload{app: "web", replicas: 1, template: spread("web", "500m")}
			db := &workload{app: "db", replicas: 2, template: plain("100m")}
			s := r.world.play(web, db)
			r.settled(s)
			stranger := &fakeNode{ready: true, since: r.clock.now(), object: r.world.nodes["node-i-old0"].object.DeepCopy()}
			stranger.object.Name, stranger.object.UID, stranger.object.Spec.ProviderID = "a-stranger", "stranger", "other:///x"
			stranger.object.Labels[corev1.LabelHostname] = "a-stranger"
			r.world.nodes["a-stranger"] = stranger
			empty(stranger.object)
			for _, p := range s.pods {
				if p.Labels["app"] == "db" { // a budget keeps them
					p.Spec.NodeName = "a-stranger"
				}
			}
			web.replicas = 2
			r.pass(10 * time.Minute)
			require.Equal(t, 1, s.waiting(), "the node counts as the emptiest host")
			assert.Zero(t, r.world.launches)
			s.on("a-stranger")[0].Spec.NodeName = "node-i-old0"
			r.pass(10 * time.Minute)
			assert.Zero(t, r.world.launches, "the node has become emptier")
			r.until("it has a node", 10*time.Minute, func() bool { return s.waiting() == 0 })
			assert.Equal(t, 1, r.world.launches)
		})
	}
}

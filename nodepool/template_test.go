package nodepool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// empty is a pool without workers, with a pending pod.
func empty(t *testing.T, pod corev1.PodSpec) (*rig, *workloads) {
	r := newRig(t)
	r.spec.Plan.Min = 0
	s := r.world.play(&workload{app: "web", replicas: 1, template: pod})
	r.settled(s)
	return r, s
}

// selecting returns a pod that selects a label of nodes.
func selecting(key, value string) corev1.PodSpec {
	out := plain("500m")
	out.NodeSelector = map[string]string{key: value}
	return out
}

// Nodes get the label of the pool and those of the template when they join, so that pods which select these get one
// node.
func TestNodesGetTheLabelsThatPodsSelect(t *testing.T) {
	for key, value := range map[string]string{cluster.LabelPool: "workers", "example.com/team": "web"} {
		t.Run(key, func(t *testing.T) {
			r, s := empty(t, selecting(key, value))
			r.spec.Template.Labels = map[string]string{"example.com/team": "web"}
			r.until("the pod has a node", 5*time.Minute, func() bool { return s.waiting() == 0 })
			r.pass(time.Hour)
			assert.Equal(t, 1, r.world.launches)
			assert.Equal(t, 1, r.running())
		})
	}
}

// The template cannot set labels of Kubernetes itself: one node shows that it does not.
func TestLabelsThatNodesDoNotGet(t *testing.T) {
	r, _ := empty(t, selecting("topology.kubernetes.io/rack", "r1"))
	r.spec.Template.Labels = map[string]string{"topology.kubernetes.io/rack": "r1"}
	r.pass(3 * time.Hour)
	assert.Equal(t, 1, r.world.launches)
	require.Len(t, r.last.Snapshot.Pending.Unhelped, 1)
}

// If nodes join with a taint that the spec does not declare, one node is launched for a pod that does not tolerate
// it.
func TestTaintsThatTheSpecDoesNotDeclare(t *testing.T) {
	r, s := empty(t, plain("500m"))
	dress := r.world.dress
	taint := []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	r.world.dress = func(n *fakeNode) { dress(n); n.object.Spec.Taints = taint }
	r.pass(3 * time.Hour)
	assert.Equal(t, 1, r.world.launches)
	require.Len(t, r.last.Snapshot.Pending.Unhelped, 1)
	assert.Contains(t, r.last.Snapshot.Pending.Unhelped[0].Reason, "the taint dedicated")

	r.pass(15 * time.Hour)
	assert.Equal(t, 2, r.world.launches, "user data may have been corrected")

	taint = nil
	r.spec.Generation++
	r.until("the new spec is tried", 10*time.Minute, func() bool { return s.waiting() == 0 })
	r.pass(time.Hour)
	assert.Equal(t, 3, r.world.launches)

	for _, n := range r.world.nodes { // as a person does to inspect it
		n.object.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
	}
	for _, p := range s.pods {
		p.Spec.NodeName, p.Status = "", corev1.PodStatus{}
	}
	r.until("a node without it comes", 10*time.Minute, func() bool { return s.waiting() == 0 })
	assert.Equal(t, 4, r.world.launches)
}

// A new node runs a pod of each DaemonSet that requests what its newest one does, even if the
// template requests otherwise.
func TestDaemonSetsAsTheyRun(t *testing.T) {
	r := idle(t, 1)
	s := r.world.play(&workload{app: "web", replicas: 1, template: plain("1")})
	s.daemon = "1500m"
	r.settled(s)
	r.pass(3 * time.Hour)
	assert.Zero(t, r.world.launches)
	require.Len(t, r.last.Snapshot.Pending.Unhelped, 1)
	assert.Equal(t, "it requests more cpu than a new node of the pool has", r.last.Snapshot.Pending.Unhelped[0].Reason)

	s.daemon, s.pods = "500m", nil
	r.pass(time.Hour)
	assert.Zero(t, s.waiting())
}

package nodepool

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

var agentNotReady = corev1.Taint{Key: "ebs.csi.aws.com/agent-not-ready", Effect: corev1.TaintEffectNoExecute}

// promise adds a resource to all offers.
func (r *rig) promise(name corev1.ResourceName, quantity string) {
	for i := range r.world.offers {
		allocatable := maps.Clone(r.world.offers[i].Allocatable)
		allocatable[name] = resource.MustParse(quantity)
		r.world.offers[i].Allocatable = allocatable
	}
}

// request makes the pending pods request a resource.
func (r *rig) request(name corev1.ResourceName, quantity string) {
	for _, p := range r.world.pending {
		p.Pod.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(quantity)
	}
}

// give gives a node a resource.
func (n *fakeNode) give(name corev1.ResourceName, quantity string) {
	n.object.Status.Allocatable[name] = resource.MustParse(quantity)
}

// tainting makes new nodes empty, with a taint.
func (r *rig) tainting(taint corev1.Taint) {
	r.world.dress = func(n *fakeNode) { n.free, n.object.Spec.Taints = true, []corev1.Taint{taint} }
}

// A node with a startup taint is awaited, but no longer than a node that does not join.
func TestNodesWithStartupTaintsAreWaitedFor(t *testing.T) {
	r := newRig(t)
	r.spec.Template.StartupTaints = []corev1.Taint{agentNotReady}
	r.tainting(agentNotReady)
	r.pend(2)
	r.pass(r.spec.Join.Timeout)
	require.Equal(t, 1, r.world.launches)
	require.Empty(t, r.last.Snapshot.Pending.Unhelped)
	require.Zero(t, r.last.Snapshot.Pending.Room, "they may not run there yet")
	r.until("another node is launched", 2*time.Minute, func() bool { return r.world.launches == 2 })

	for _, n := range r.world.nodes {
		n.object.Spec.Taints = nil
	}
	r.pass(time.Hour)
	require.Equal(t, 2, r.world.launches)
	require.Equal(t, 2, r.last.Snapshot.Pending.Room)
}

// TestStartupTaintsThatNeverGo: a launch in each join.timeout would help no more than the first, so the wait doubles.
func TestStartupTaintsThatNeverGo(t *testing.T) {
	r := newRig(t)
	r.spec.Template.StartupTaints = []corev1.Taint{agentNotReady}
	r.tainting(agentNotReady)
	r.pend(2)
	for launches, minutes := range []time.Duration{9, 20, 29, 49} { // 10 of each are a join.timeout
		r.pass(minutes * time.Minute)
		require.LessOrEqual(t, r.world.launches, launches+1)
	}
	require.Equal(t, 4, r.world.launches)
	require.Equal(t, 4, r.record().Attempts[0].Failed)
	require.Empty(t, r.world.terminated)
}

// Kubernetes' own taints of a new node pass too, and it may get the labels of the cloud later.
func TestNodesThatAwaitTheCloudAreWaitedFor(t *testing.T) {
	r := newRig(t)
	r.tainting(corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true",
		Effect: corev1.TaintEffectNoSchedule})
	tainted := r.world.dress
	r.world.dress = func(n *fakeNode) { tainted(n); delete(n.object.Labels, corev1.LabelTopologyZone) }
	r.pend(1)
	r.world.pending[0].Pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "b",
		corev1.LabelTopologyRegion: "here"}
	for i := range r.world.offers {
		labels := maps.Clone(r.world.offers[i].Labels)
		labels[corev1.LabelTopologyRegion] = "here"
		r.world.offers[i].Labels = labels
	}
	r.pass(9 * time.Minute)
	require.Equal(t, 1, r.world.launches)
	require.Empty(t, r.last.Snapshot.Pending.Unhelped)
	node := r.world.nodes["node-i-1"].object
	node.Spec.Taints, node.Labels[corev1.LabelTopologyZone], node.Labels[corev1.LabelTopologyRegion] = nil, "b", "here"
	r.pass(time.Hour)
	require.Equal(t, 1, r.world.launches)
	require.Equal(t, 1, r.last.Snapshot.Pending.Room)
}

// A device plugin may register later than its node is Ready.
func TestDevicesThatComeLaterAreWaitedFor(t *testing.T) {
	r := newRig(t)
	r.promise(gpu, "1")
	r.world.dress = func(n *fakeNode) { n.free = true }
	r.pend(1)
	r.request(gpu, "1")
	r.pass(9 * time.Minute)
	require.Equal(t, 1, r.world.launches)
	require.Empty(t, r.last.Snapshot.Pending.Unhelped)
	r.world.nodes["node-i-1"].give(gpu, "1")
	r.pass(time.Hour)
	require.Equal(t, 1, r.world.launches)
	require.Equal(t, 1, r.last.Snapshot.Pending.Room)

	r.world.nodes["node-i-1"].give(gpu, "0")
	r.world.pending[0].Since = r.clock.now() // it ran there
	r.until("a device that is lost later is launched again", 2*time.Minute, func() bool { return r.world.launches == 2 })
}

// If no device plugin registers at all, one node is launched without effect, and not one after the other.
func TestNodesWithoutTheirDevices(t *testing.T) {
	r := newRig(t)
	r.promise(gpu, "1")
	r.world.dress = func(n *fakeNode) { n.free = true }
	r.spec.Plan.Min = 1
	r.pend(1)
	r.request(gpu, "1")
	r.pass(3 * time.Hour)
	require.Equal(t, 1, r.world.launches)
	require.Len(t, r.last.Snapshot.Pending.Unhelped, 1)
	r.restart()
	r.pass(time.Hour)
	require.Equal(t, 1, r.world.launches)

	for _, n := range r.world.nodes {
		n.give(gpu, "1")
	}
	r.tick()
	require.Empty(t, r.last.Snapshot.Pending.Unhelped)
	require.Equal(t, 1, r.last.Snapshot.Pending.Room)
	r.pend(1)
	r.world.pending[1].Pod.Name = "second"
	r.request(gpu, "1")
	r.until("nodes are launched for devices again", 2*time.Minute, func() bool { return r.world.launches == 2 })
}

package nodepool

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
)

// Replicas that spread over hosts keep their nodes if these would be removed to save money: the
// node that is being drained counts as the emptiest host, so no other one takes the pod. With
// nodeTaintsPolicy: Honor it does not count.
func TestSpreadPodsAreNotEvictedToSaveMoney(t *testing.T) {
	r := idle(t, 3)
	r.world.podGrace = 40 * time.Second // longer than pods wait until they count
	web := &workload{app: "web", replicas: 3, template: spread("web", "500m")}
	s := r.world.play(web)
	r.settled(s)
	r.pass(2 * time.Hour)
	assert.Zero(t, s.evictions)
	assert.Empty(t, r.world.terminated)
	assert.Zero(t, r.count(journal.EventScaleDownAborted))
	require.Equal(t, plan.NoRemovableNode, r.last.Decision.Reason, r.last.Decision.Message)
	require.Contains(t, r.last.Decision.Message,
		"only after this one is deleted: its topologySpreadConstraint over kubernetes.io/hostname counts that node until then, unless it sets nodeTaintsPolicy: Honor")

	honor := corev1.NodeInclusionPolicyHonor
	for _, p := range s.pods {
		p.Spec.TopologySpreadConstraints[0].NodeTaintsPolicy = &honor
	}
	web.template.TopologySpreadConstraints[0].NodeTaintsPolicy = &honor
	r.pass(2 * time.Hour)
	assert.Len(t, r.world.terminated, 2, "they fit on one node, and none is launched again")
	assert.Zero(t, s.waiting())
	assert.Zero(t, r.world.launches)
	r.clean()
}

// Nodes that must go are replaced though pods get a place only when a Node is deleted: these wait, and nothing is
// launched for them.
func TestSpreadPodsWaitForTheEndOfNodesThatMustGo(t *testing.T) {
	for name, budget := range map[string]int{"without a budget": 0, "one may be away": 1} {
		t.Run(name, func(t *testing.T) {
			r := busy(t, 3)
			r.world.podGrace = 40 * time.Second
			for _, n := range r.world.nodes {
				n.pods = nil
			}
			s := r.world.play(&workload{app: "web", replicas: 6, template: spread("web", "500m"), budget: budget})
			r.settled(s)
			r.ages()
			r.until("all are replaced", 3*time.Hour, func() bool { return r.left() == 0 && r.record().Action == nil })
			r.pass(30 * time.Minute)
			assert.Equal(t, 3, r.world.launches)
			assert.Equal(t, 3, r.running())
			assert.Zero(t, s.waiting())
			assert.LessOrEqual(t, s.evictions, 12)
			assert.Zero(t, r.count(journal.EventScaleDownAborted))
			r.clean()
		})
	}
}

// plain returns a pod that requests CPU and may run anywhere.
func plain(cpu string) corev1.PodSpec {
	out := spread("", cpu)
	out.TopologySpreadConstraints = nil
	return out
}

// Nodes can have so many volumes attached: pods with volumes fit on no node that has reached its limit, and get a
// new node.
func TestVolumesThatNodesCanAttach(t *testing.T) {
	r := idle(t, 3)
	db := &workload{app: "db", replicas: 6, template: plain("100m"), stateful: true}
	s := r.world.play(db)
	s.limit = 2
	r.settled(s)
	r.pass(2 * time.Hour)
	assert.Zero(t, s.evictions)
	assert.Empty(t, r.world.terminated)
	require.Equal(t, plan.NoRemovableNode, r.last.Decision.Reason, r.last.Decision.Message)

	db.replicas = 7
	r.until("it has a node", 5*time.Minute, func() bool { return r.world.launches > 0 && s.waiting() == 0 })
	r.pass(2 * time.Hour)
	assert.Equal(t, 1, r.world.launches)
	assert.Zero(t, s.evictions)

	db.replicas = 4
	s.pods = s.pods[:4]
	r.pass(2 * time.Hour)
	assert.Equal(t, 2, r.running(), "two nodes have room for four volumes")
	assert.Zero(t, s.waiting())
	assert.Equal(t, 1, r.world.launches)
}

// A pod whose volumes no node can attach together gets no node.
func TestMoreVolumesThanANodeCanAttach(t *testing.T) {
	r := idle(t, 1)
	s := r.world.play(&workload{app: "db", replicas: 1, template: plain("100m"), stateful: true})
	s.limit = 1
	r.settled(s)
	for i := range 2 {
		name := fmt.Sprint("more-", i)
		r.world.objects = append(r.world.objects, volumeOf(name)...)
	}
	wants := s.pods[0].DeepCopy()
	wants.Name, wants.UID, wants.Spec.NodeName, wants.Labels = "big", "big", "", nil
	wants.Spec.Volumes = nil
	for i := range 2 {
		wants.Spec.Volumes = append(wants.Spec.Volumes, corev1.Volume{Name: fmt.Sprint(i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("more-", i)}}})
	}
	wants.Status.Conditions = nil
	s.pods = append(s.pods, wants)
	r.pass(2 * time.Hour)
	assert.Zero(t, r.world.launches)
	require.Len(t, r.last.Snapshot.Pending.Unhelped, 1)
	assert.Equal(t, "it uses more volumes than can be attached to a new node of the pool",
		r.last.Snapshot.Pending.Unhelped[0].Reason)
}

// The pods of a node that another program drains keep the room that they will need: it is not given to the pods of a
// node of the pool.
func TestPodsOfNodesThatOthersEmptyKeepTheirRoom(t *testing.T) {
	for name, empty := range map[string]func(*corev1.Node){
		"Karpenter": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
		},
		"kubectl drain": func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"another pool": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "foresail.dev/removing", Value: "down-1", Effect: corev1.TaintEffectNoSchedule}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := idle(t, 2)
			r.spec.Plan.Min, r.spec.Plan.Idle.For = 0, 5*time.Minute
			s := r.world.play(&workload{app: "web", replicas: 3, template: plain("1")})
			// Another node has one of the pods, a node of the pool two, and one of the pool has none.
			stranger := &fakeNode{ready: true, since: r.clock.now(), object: r.world.nodes["node-i-old0"].object.DeepCopy()}
			stranger.object.Name, stranger.object.UID, stranger.object.Spec.ProviderID = "a-stranger", "stranger", "other:///x"
			stranger.object.Labels[corev1.LabelHostname] = "a-stranger"
			stranger.object.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1")
			r.world.nodes["a-stranger"] = stranger
			r.settled(s)
			empty(stranger.object)
			r.pass(time.Hour)
			assert.Zero(t, s.evictions)
			assert.Empty(t, r.world.terminated, "the pod of the other node needs the empty one")
			for _, p := range s.on("a-stranger") {
				p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
			}
			delete(r.world.nodes, "a-stranger")
			r.pass(time.Hour)
			assert.Zero(t, s.waiting())
			assert.Zero(t, r.world.launches)
		})
	}
}

// A pod that is nominated to a node holds its room there.
func TestNominatedPodsHoldTheirRoom(t *testing.T) {
	r := idle(t, 2)
	s := r.world.play(&workload{app: "web", replicas: 1, template: plain("1")})
	r.settled(s)
	preemptor := s.pods[0].DeepCopy()
	preemptor.Name, preemptor.UID, preemptor.Labels, preemptor.Spec.NodeName = "preemptor", "preemptor", nil, ""
	preemptor.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
	preemptor.Status = corev1.PodStatus{NominatedNodeName: "node-i-old1", Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		LastTransitionTime: metav1.NewTime(r.clock.now())}}}
	r.world.objects = append(r.world.objects, preemptor)
	r.pass(time.Hour)
	assert.Empty(t, r.world.terminated, "the other node's room is promised")
	assert.Zero(t, r.world.launches)
}

// Pods that are scheduled together get nodes together: none while the pool may not have enough for all of them.
func TestGangsGetNodesForAllOrNone(t *testing.T) {
	job := plain("1")
	job.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("job")}
	r, s := empty(t, job)
	r.spec.Plan.Max, s.all[0].replicas = 2, 6
	r.pass(time.Hour)
	assert.Zero(t, r.world.launches, "three would be needed")
	assert.Len(t, r.last.Snapshot.Pending.Unhelped, 6)
	r.spec.Plan.Max = 3
	r.until("all have a node", 10*time.Minute, func() bool { return s.waiting() == 0 })
	assert.Equal(t, 3, r.world.launches)
}

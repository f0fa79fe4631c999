package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// Volumes count once on their node, by the driver that attaches them.
func TestAttachedVolumes(t *testing.T) {
	ebs := func(v *corev1.PersistentVolume) *corev1.PersistentVolume {
		v.Spec.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{}
		return v
	}
	efs := volumeIn("")
	efs.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "efs.csi.aws.com"}
	s := newStorage()
	for name, c := range map[string]*corev1.PersistentVolumeClaim{
		"a": claimed("", "1Gi", boundTo("v")), "b": claimed("", "1Gi", boundTo("w")), "new": claimed("ebs", "1Gi"),
		"local": claimed("", "1Gi", boundTo("x")),
	} {
		s.claims[types.NamespacedName{Namespace: c.Namespace, Name: name}] = claimOf(c)
	}
	s.volumes[types.NamespacedName{Name: "v"}],
		s.volumes[types.NamespacedName{Name: "w"}] = volumeOf(ebs(volumeIn(""))), volumeOf(efs)
	s.volumes[types.NamespacedName{Name: "x"}] = volumeOf(volumeIn(""))
	s.classes[types.NamespacedName{Name: "ebs"}] = classOf(classNamed("kubernetes.io/aws-ebs",
		storagev1.VolumeBindingWaitForFirstConsumer))
	c := seeStorage(s, nodeNamed("n"), []*corev1.Pod{
		onNode("p", using("a", "b", "local")), onNode("q", using("a")),
		onNode("r", unschedulable(epoch), using("a", "new", "local")),
	})
	v, w := Attachment{"ebs.csi.aws.com", "v"}, Attachment{"efs.csi.aws.com", "w"}
	assert.Equal(t, []Attachment{v, w}, c.Nodes[0].Attached)
	require.Len(t, c.Pending, 1)
	assert.Equal(t, []Attachment{v, {"ebs.csi.aws.com", "default/new"}}, c.Pending[0].Attach)
	replaced := c.Replacements(&c.Nodes[0])
	require.Len(t, replaced, 2)
	assert.Equal(t, []Attachment{v, w}, replaced[0].Attach)
}

func TestAttachLimits(t *testing.T) {
	limit := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: "ebs.csi.aws.com", NodeID: "n", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(25))}},
			{Name: "efs.csi.aws.com", NodeID: "n"},
		}}}
	c, err := List(t.Context(), fake.NewClientset(nodeNamed("n"), nodeNamed("other"), limit), epoch)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"ebs.csi.aws.com": 25}, c.Nodes[0].AttachLimits)
	assert.Empty(t, c.Nodes[1].AttachLimits, "no limit is known")
}

// A pod that is nominated to a node holds room there, unless the node takes no pods.
func TestNominatedPods(t *testing.T) {
	nominated := func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }
	n := readyNode("n")
	pods := []*corev1.Pod{onNode("p"), onNode("q", unschedulable(epoch), nominated)}
	c := see(n, pods)
	require.Empty(t, c.Pending)
	require.Len(t, c.Nodes[0].Nominated, 1)
	assert.Len(t, c.Nodes[0].Pods, 1)
	cpu := c.Nodes[0].Requested[corev1.ResourceCPU]
	assert.EqualValues(t, 2*500, cpu.MilliValue())
	assert.Len(t, c.Replacements(&c.Nodes[0]), 2, "it needs another node if this one goes")

	n.Spec.Unschedulable = true
	assert.Len(t, see(n, pods).Pending, 1)
	n = readyNode("n")
	n.Status.Conditions[0].Status = corev1.ConditionFalse
	assert.Len(t, see(n, pods).Pending, 1, "it may never be Ready again")
}

func TestLeaves(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"no":                {func(*corev1.Node) {}, false},
		"cordoned":          {func(n *corev1.Node) { n.Spec.Unschedulable = true }, false},
		"deleted":           {func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: epoch} }, true},
		"by a pool":         {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: Removing}} }, true},
		"its taint removed": {func(n *corev1.Node) { n.Annotations = map[string]string{Removing: "down-1"} }, true},
		"by Karpenter": {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}} },
			true},
		"cluster-autoscaler": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}}
		}, true},
		"another taint": {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "dedicated"}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodeNamed("n")
			test.change(n)
			assert.Equal(t, test.want, see(n, nil).Nodes[0].Leaving)
		})
	}
}

func TestGangs(t *testing.T) {
	for name, change := range map[string]change{
		"Kubernetes":   func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("job")} },
		"coscheduling": func(p *corev1.Pod) { p.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "job"} },
		"Volcano":      annotated("scheduling.k8s.io/group-name", "job"),
	} {
		t.Run(name, func(t *testing.T) {
			pending := see(nodeNamed("n"), []*corev1.Pod{onNode("p", unschedulable(epoch), change)}).Pending
			require.Len(t, pending, 1)
			assert.Equal(t, "default/job", pending[0].Gang)
		})
	}
}

// A departure continues as long as the node gets emptier; pods that a drain does not remove do not count.
func TestDeparting(t *testing.T) {
	n := nodeNamed("n")
	n.Spec.Unschedulable = true
	stays := onNode("agent", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" })
	ends := onNode("ends", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	at := epoch
	var departures Departures
	seen := func(pods ...string) *Node {
		all := []*corev1.Pod{stays, ends}
		for _, name := range pods {
			all = append(all, onNode(name))
		}
		c := see(n, all)
		c.At = at
		out, next := c.Departing(departures)
		departures = next
		require.True(t, c.Nodes[0].EmptierAt.IsZero(), "an observation does not change")
		return &out.Nodes[0]
	}
	after := func(d time.Duration) { at = at.Add(d) }

	assert.Equal(t, epoch, seen("a", "b").EmptierAt)
	after(14 * time.Minute)
	assert.False(t, seen("a", "b").Stalled(at))
	after(time.Minute)
	assert.True(t, seen("a", "b").Stalled(at), "as full for 15 minutes")
	assert.False(t, seen("a").Stalled(at), "it has become emptier")
	after(10 * time.Minute)
	assert.False(t, seen("a", "c").Stalled(at))
	after(5 * time.Minute)
	assert.True(t, seen("c").Stalled(at), "no emptier than before")

	n.Spec.Unschedulable = false
	assert.False(t, seen("c").Stalled(at), "it does not leave any more")
	n.Spec.Taints = []corev1.Taint{{Key: Removing}}
	assert.Equal(t, at, seen("c").EmptierAt, "it leaves once more")
	assert.False(t, (&Node{}).Stalled(at), "not observed")
}

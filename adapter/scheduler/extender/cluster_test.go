package extender

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const removalMark = "example.com/removing"

// listed is a cluster in which nothing is, as of a clock.
func listed(t testing.TB, now func() time.Time) *cluster {
	t.Helper()
	c := newCluster(Options{Now: now, RemovalMark: removalMark}, newAssumedPods(testRules()))
	require.NoError(t, c.nodes.Replace(nil, ""))
	require.NoError(t, c.pods.Replace(nil, ""))
	return c
}

func always(at time.Time) func() time.Time { return func() time.Time { return at } }

func someNode(name string, uid types.UID) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3900m"),
				corev1.ResourceMemory: resource.MustParse("15Gi")},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(noon.Add(-30 * time.Minute))}},
		},
	}
}

// boundPod requests one core and 100 MiB, and is bound since noon.
func boundPod(name, node string) *corev1.Pod {
	p := podOf(declared("a", "1", "", "100Mi", ""))
	p.Name, p.UID, p.CreationTimestamp, p.Spec.NodeName = name, types.UID("uid-of-"+name),
		metav1.NewTime(noon.Add(-time.Second)), node
	p.Status.Conditions = []corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, noon)}
	return p
}

// what boundPod counts.
func boundRequests() use { return use{1000, 100 * mib} }

func boundEstimate() use { return use{850, 70 * mib} }

// at returns what is known of a node, nil for nothing.
func (c *cluster) at(t assert.TestingT, name string) *node {
	all, err := c.list(c.now())
	assert.NoError(t, err)
	if i := slices.IndexFunc(all, func(n node) bool { return n.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func TestNodesInTheCache(t *testing.T) {
	c := listed(t, always(noon))
	assert.Nil(t, c.at(t, "n"))
	require.NoError(t, c.nodes.Add(someNode("n", "1")))
	got := c.at(t, "n")
	assert.Equal(t, node{
		slot: got.slot, name: "n", allocatable: use{3900, 15 << 30}, created: noon.Add(-time.Hour),
		readySince: noon.Add(-30 * time.Minute),
		terms:      &terms{labels: map[string]string{}},
	}, *got)

	marked := someNode("n", "1")
	marked.Annotations = map[string]string{removalMark: "7"}
	require.NoError(t, c.nodes.Update(marked))
	assert.Equal(t, removalMark, c.at(t, "n").removing, "as annotated")
	assert.Same(t, got.slot, c.at(t, "n").slot, "it is the same node")
	marked = someNode("n", "1")
	marked.Spec.Taints = []corev1.Taint{{Key: "other"}, {Key: removalMark}}
	require.NoError(t, c.nodes.Update(marked))
	assert.Equal(t, removalMark, c.at(t, "n").removing, "as tainted")

	down := someNode("n", "1")
	down.Status.Conditions[0].Status = corev1.ConditionUnknown
	require.NoError(t, c.nodes.Update(down))
	assert.Empty(t, c.at(t, "n").removing)
	assert.True(t, c.at(t, "n").readySince.IsZero())
	require.NoError(t, c.nodes.Delete(down))
	assert.Nil(t, c.at(t, "n"))
	assert.Empty(t, c.nodeInfos)
}

func TestTaintsOfNodes(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: "v", Effect: effect}
	}
	closed := corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		spec corev1.NodeSpec
		want []corev1.Taint
	}{
		"any": {corev1.NodeSpec{}, nil},
		"those that bear": {corev1.NodeSpec{Taints: []corev1.Taint{taint("a", "NoSchedule"), taint("b", "NoExecute")}},
			[]corev1.Taint{taint("a", "NoSchedule"), taint("b", "NoExecute")}},
		"rather not": {corev1.NodeSpec{Taints: []corev1.Taint{taint("a", "PreferNoSchedule")}}, nil},
		"cordoned, so far": {corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{taint("a", "NoSchedule")}},
			[]corev1.Taint{taint("a", "NoSchedule"), closed}},
		"cordoned": {corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{closed}}, []corev1.Taint{closed}},
	} {
		n := someNode("n", "1")
		n.Spec, n.Labels = test.spec, map[string]string{"zone": "a"}
		n.Spec.Taints = append([]corev1.Taint(nil), test.spec.Taints...)
		for i := range n.Spec.Taints {
			n.Spec.Taints[i].TimeAdded = &metav1.Time{Time: noon}
		}
		got := termsOf(n)
		assert.Equal(t, test.want, got.taints, name)
		assert.Equal(t, map[string]string{"zone": "a"}, got.labels, name)
	}
	one, other := someNode("n", "1"), someNode("m", "2")
	one.Labels, other.Labels = map[string]string{"zone": strings.Clone("eu-central-1")},
		map[string]string{"zone": strings.Clone("eu-central-1")}
	assert.Same(t, unsafe.StringData(termsOf(one).labels["zone"]), unsafe.StringData(termsOf(other).labels["zone"]),
		"they share what is the same")
}

func TestUnknownUntilListed(t *testing.T) {
	c := newCluster(Options{Now: always(noon)}, newAssumedPods(testRules()))
	_, err := c.list(noon)
	require.ErrorContains(t, err, "nodes: not listed yet\npods: not listed yet")
	require.NoError(t, c.nodes.Replace(nil, ""))
	require.EqualError(t, c.state(noon), "pods: not listed yet")
	require.NoError(t, c.pods.Replace(nil, ""))
	require.NoError(t, c.state(noon))
}

func TestPodsBeforeTheirNode(t *testing.T) {
	c := listed(t, always(noon))
	require.NoError(t, c.pods.Add(boundPod("p", "n")))
	require.NoError(t, c.pods.Add(boundPod("q", "n")))
	require.NoError(t, c.pods.Delete(boundPod("q", "n")))
	require.NoError(t, c.nodes.Add(someNode("n", "1")))
	assert.Equal(t, boundRequests(), c.at(t, "n").requested.load())
	assert.Equal(t, boundEstimate(), c.at(t, "n").assumed.load())
}

func TestReplacedNode(t *testing.T) {
	for name, again := range map[string]func(c *cluster) error{
		"is made after the other has gone": func(c *cluster) error {
			if err := c.nodes.Delete(someNode("n", "1")); err != nil {
				return err
			}
			return c.nodes.Add(someNode("n", "2"))
		},
		"is there in the next list":  func(c *cluster) error { return c.nodes.Replace([]any{someNode("n", "2")}, "") },
		"is updated, for all we see": func(c *cluster) error { return c.nodes.Update(someNode("n", "2")) },
	} {
		t.Run(name, func(t *testing.T) {
			c := listed(t, always(noon))
			require.NoError(t, c.nodes.Add(someNode("n", "1")))
			require.NoError(t, c.pods.Add(boundPod("p", "n")))
			old := c.at(t, "n").slot
			require.NoError(t, c.pods.Add(boundPod("q", "")))
			c.assumed.assume(idOf("uid-of-q"), newAssumedPod(&node{slot: old}, use{1, 1}, use{1, 1}, noon))
			require.NoError(t, again(c))
			fresh := c.at(t, "n").slot
			assert.NotSame(t, old, fresh)
			assert.Equal(t, boundRequests(), fresh.requested.load(), "what is bound by name is there still")
			assert.Equal(t, boundEstimate(), fresh.assumed.load())
			require.NoError(t, c.pods.Delete(boundPod("p", "n")))
			require.NoError(t, c.pods.Add(boundPod("q", "n")))
			assert.Equal(t, boundRequests(), fresh.requested.load())
			assert.Equal(t, boundEstimate(), fresh.assumed.load())
			assert.Equal(t, use{}, old.assumed.load())
		})
	}
}

func TestPendingPodsThatAreRemovedDoNotCount(t *testing.T) {
	c := listed(t, always(noon))
	require.NoError(t, c.nodes.Add(someNode("n", "1")))
	s := c.at(t, "n").slot
	p := boundPod("p", "")
	require.NoError(t, c.pods.Add(p))
	c.assumed.assume(idOf(p.UID), newAssumedPod(&node{slot: s}, use{1, 1}, use{1, 1}, noon))
	require.NoError(t, c.pods.Update(p))
	assert.Equal(t, use{1, 1}, s.requested.load(), "it is pending still")
	require.NoError(t, c.pods.Delete(p))
	assert.Equal(t, use{}, s.requested.load())
	assert.Equal(t, use{}, s.assumed.load())
	assert.Empty(t, c.assumed.assumed)
	assert.Empty(t, c.assumed.pending)
}

// Anyone may ask about a pod, so that only those count which the API has.
func TestAssumesOnlyPendingPods(t *testing.T) {
	c := listed(t, always(noon))
	require.NoError(t, c.nodes.Add(someNode("n", "1")))
	s := c.at(t, "n").slot
	asked := func() use {
		c.assumed.assume(idOf("uid-of-p"), newAssumedPod(&node{slot: s}, use{1, 1}, use{1, 1}, noon))
		defer c.assumed.forget(idOf("uid-of-p"))
		return s.assumed.load()
	}
	assert.Equal(t, use{}, asked(), "no one knows it")
	require.NoError(t, c.pods.Add(boundPod("p", "")))
	assert.Equal(t, use{1, 1}, asked())
	require.NoError(t, c.pods.Update(boundPod("p", "n")))
	assert.Equal(t, boundEstimate(), asked(), "it is bound")
	ended := boundPod("p", "n")
	ended.Status.Phase = corev1.PodSucceeded
	require.NoError(t, c.pods.Update(ended))
	assert.Equal(t, use{}, asked(), "it has ended")
	require.NoError(t, c.pods.Delete(ended))
	assert.Equal(t, use{}, asked(), "it is gone")
	assert.Empty(t, c.assumed.pending)
}

func TestBoundPodsAreCappedAtAllocatable(t *testing.T) {
	c := listed(t, always(noon))
	p := boundPod("p", "n")
	p.Spec.Containers = podOf(declared("a", "", "100", "", "1Ti")).Spec.Containers
	require.NoError(t, c.pods.Add(p))
	require.NoError(t, c.nodes.Add(someNode("n", "1")))
	c.assumed.recount(noon, nil)
	assert.Equal(t, use{3900, 15 << 30}, c.at(t, "n").assumed.load())
	require.NoError(t, c.nodes.Update(someNode("n", "2")))
	c.assumed.recount(noon, nil)
	assert.Equal(t, use{3900, 15 << 30}, c.at(t, "n").assumed.load())
}

// A pod without a time at which it was bound is not bound again by each of its updates.
func TestPodsAreBoundOnce(t *testing.T) {
	at := noon
	c := listed(t, func() time.Time { return at })
	require.NoError(t, c.nodes.Add(someNode("n", "1")))
	p := boundPod("p", "n")
	p.Status.Conditions = nil
	for range 10 {
		require.NoError(t, c.pods.Update(p))
		require.NoError(t, c.pods.Replace([]any{p}, ""))
		at = at.Add(time.Minute)
		c.assumed.recount(at, nil)
	}
	assert.Equal(t, use{}, c.at(t, "n").assumed.load())
	assert.Equal(t, boundRequests(), c.at(t, "n").requested.load())
}

func TestLowestPriority(t *testing.T) {
	c := listed(t, always(noon))
	assert.EqualValues(t, math.MaxInt32, c.lowest(), "there is nothing to evict")
	of := func(name, node string, priority int32) *corev1.Pod {
		p := boundPod(name, node)
		p.Spec.Priority = &priority
		return p
	}
	plain := boundPod("plain", "n")
	daemon := of("daemon", "n", -5)
	own(daemon, "DaemonSet", true)
	for _, step := range []struct {
		what string
		do   func(any) error
		pod  *corev1.Pod
		want int32
	}{
		{"one that pends", c.pods.Add, of("pending", "", -10), math.MaxInt32},
		{"one of a DaemonSet", c.pods.Add, daemon, math.MaxInt32},
		{"a critical one", c.pods.Add, of("critical", "n", 2_000_000_000), math.MaxInt32},
		{"one", c.pods.Add, of("a", "n", 1000), 1000},
		{"a higher one", c.pods.Add, of("b", "n", 1001), 1000},
		{"one without", c.pods.Add, plain, 0},
		{"another", c.pods.Add, of("low", "m", -10), -10},
		{"the same, seen again", c.pods.Update, of("low", "m", -10), -10},
		{"it is gone", c.pods.Delete, of("low", "m", -10), 0},
		{"so is that", c.pods.Delete, plain, 1000},
		{"and that", c.pods.Delete, of("a", "n", 1000), 1001},
		{"and the last", c.pods.Delete, of("b", "n", 1001), math.MaxInt32},
	} {
		require.NoError(t, step.do(step.pod))
		assert.Equal(t, step.want, c.lowest(), step.what)
	}
	assert.Empty(t, c.evictable)
}

package extender

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unique"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/snapshot"
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
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3900m"), corev1.ResourceMemory: resource.MustParse("15Gi")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-30 * time.Minute))}},
		},
	}
}

// boundPod requests one core and 100 MiB, and is bound since noon.
func boundPod(name, node string) *corev1.Pod {
	p := podOf(declared("a", "1", "", "100Mi", ""))
	p.Name, p.UID, p.CreationTimestamp, p.Spec.NodeName = name, types.UID("uid-of-"+name), metav1.NewTime(noon.Add(-time.Second)), node
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
		slot: got.slot, name: "n", allocatable: use{3900, 15 << 30}, created: noon.Add(-time.Hour), readySince: noon.Add(-30 * time.Minute),
		terms: &terms{labels: map[string]string{}},
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
		"any":              {corev1.NodeSpec{}, nil},
		"those that bear":  {corev1.NodeSpec{Taints: []corev1.Taint{taint("a", "NoSchedule"), taint("b", "NoExecute")}}, []corev1.Taint{taint("a", "NoSchedule"), taint("b", "NoExecute")}},
		"rather not":       {corev1.NodeSpec{Taints: []corev1.Taint{taint("a", "PreferNoSchedule")}}, nil},
		"cordoned, so far": {corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{taint("a", "NoSchedule")}}, []corev1.Taint{taint("a", "NoSchedule"), closed}},
		"cordoned":         {corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{closed}}, []corev1.Taint{closed}},
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
	one.Labels, other.Labels = map[string]string{"zone": strings.Clone("eu-central-1")}, map[string]string{"zone": strings.Clone("eu-central-1")}
	assert.Same(t, unsafe.StringData(termsOf(one).labels["zone"]), unsafe.StringData(termsOf(other).labels["zone"]), "they share what is the same")
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
	assert.Equal(t, use{}, asked(), "nobody knows it")
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

// A pod without a time at which it was bound is not bound anew by each of its updates.
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

// play is a cluster to which things happen at random, beside all that a naive observer remembers of it.
type play struct {
	*testing.T
	*cluster
	random *rand.Rand
	clock  time.Time
	serial int

	live       map[string]*corev1.Pod // by name; what has ended is there still
	told       map[types.UID]bool     // those of them that have not ended, as told
	bound      map[types.UID]time.Time
	started    map[types.UID]time.Time // first
	assumedNow map[types.UID]*assumedPod
	there      map[string]*corev1.Node
	loads      map[string]snapshot.NodeLoad
}

func (p *play) name(of string, n int) string { return fmt.Sprintf("%s-%d", of, p.random.IntN(n)) }

func (p *play) uid() types.UID {
	p.serial++
	return types.UID(fmt.Sprint("uid-", p.serial))
}

// observe remembers a pod as told now.
func (p *play) observe(pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded {
		p.miss(pod.UID)
		return
	}
	p.told[pod.UID] = true
	if pod.Spec.NodeName == "" {
		return
	}
	delete(p.assumedNow, pod.UID)
	if _, known := p.bound[pod.UID]; !known {
		p.bound[pod.UID] = boundAt(pod, p.clock)
	}
	if at := startedAt(pod); at != 0 && p.started[pod.UID].IsZero() {
		p.started[pod.UID] = time.Unix(0, at)
	}
}

// miss remembers that a pod is told to have gone or ended. Of one that was never told of, that says nothing.
func (p *play) miss(uid types.UID) {
	if p.told[uid] {
		delete(p.assumedNow, uid)
		delete(p.told, uid)
	}
}

// change changes a pod, or makes one. It is not told yet.
func (p *play) change() *corev1.Pod {
	name := p.name("p", 30)
	pod := p.live[name]
	if pod == nil {
		pod = podOf(declared("a", fmt.Sprint(1+p.random.IntN(9)), "", fmt.Sprintf("%dMi", 1+p.random.IntN(900)), ""))
		pod.Name, pod.UID, pod.CreationTimestamp = name, p.uid(), metav1.NewTime(p.clock.Add(-10*time.Second))
		own(pod, []string{"ReplicaSet", "DaemonSet", "Node"}[int(name[len(name)-1])%3], true)
		p.live[name] = pod
		return pod
	}
	pod = pod.DeepCopy()
	p.live[name] = pod
	switch kind := p.random.IntN(10); {
	case pod.Spec.NodeName == "":
		pod.Spec.NodeName = p.name("n", 6)
		if kind > 1 {
			at := p.clock.Add(-time.Duration(p.random.IntN(15)-2) * time.Second)
			pod.Status.Conditions = []corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, at)}
		}
	case kind < 6:
		at := p.clock.Add(-time.Duration(p.random.IntN(30)) * time.Second)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{}, ranSince(at)}[kind%2:]
	case kind < 8:
		pod.Spec.Containers = podOf(declared("a", fmt.Sprint(1+p.random.IntN(9)), "", "50Mi", "")).Spec.Containers
	default:
		pod.Status.Phase = corev1.PodSucceeded
	}
	return pod
}

// step does something, and returns what.
func (p *play) step() string {
	switch p.random.IntN(16) {
	case 0, 1, 2, 3, 4, 5:
		pod := p.change()
		p.observe(pod)
		require.NoError(p, p.pods.Update(pod))
		return "pod " + pod.Name
	case 6:
		name := p.name("p", 30)
		if pod := p.live[name]; pod != nil {
			delete(p.live, name)
			p.miss(pod.UID)
			require.NoError(p, p.pods.Delete(pod))
		}
		return "removed " + name
	case 7:
		return p.relist()
	case 8, 9:
		return p.node()
	case 10, 11:
		return p.ask()
	case 12:
		if pod := p.live[p.name("p", 30)]; pod != nil {
			delete(p.assumedNow, pod.UID)
			p.assumed.forget(idOf(pod.UID))
		}
		return "asked again"
	case 13:
		p.clock = p.clock.Add(time.Duration(p.random.IntN(40000)) * time.Millisecond)
		return "time passes"
	default:
		at := p.clock.Add(-time.Duration(p.random.IntN(20)) * time.Second)
		p.loads[p.name("n", 6)] = snapshot.NodeLoad{
			CPU: snapshot.Use{Sampled: at, Window: time.Duration(p.random.IntN(3)) * 20 * time.Second}, Memory: snapshot.Use{Sampled: at},
		}
		return "sampled"
	}
}

// relist has some pods change, go, and be replaced by others of their names unseen, and then lists all.
func (p *play) relist() string {
	for range p.random.IntN(6) {
		p.change()
	}
	for range p.random.IntN(3) {
		delete(p.live, p.name("p", 30))
	}
	if name := p.name("p", 30); p.live[name] != nil {
		p.live[name] = p.live[name].DeepCopy()
		p.live[name].UID = p.uid()
	}
	var list []any
	gone := maps.Clone(p.told)
	for _, pod := range p.live {
		list = append(list, pod)
		delete(gone, pod.UID)
		p.observe(pod)
	}
	for uid := range gone {
		p.miss(uid)
	}
	require.NoError(p, p.pods.Replace(list, ""))
	return "pods are listed"
}

// node has a Node come, go, or be another, or lists all.
func (p *play) node() string {
	name := p.name("n", 6)
	made := someNode(name, p.uid())
	switch there := p.there[name]; {
	case p.random.IntN(5) == 0:
		delete(p.there, p.name("n", 6))
		p.there[name] = made
		var list []any
		for _, n := range p.there {
			list = append(list, n)
		}
		require.NoError(p, p.nodes.Replace(list, ""))
		return "nodes are listed"
	case there == nil:
		p.there[name] = made
		require.NoError(p, p.nodes.Add(made))
		return "node " + name
	default:
		delete(p.there, name)
		require.NoError(p, p.nodes.Delete(there))
		return "removed " + name
	}
}

// ask scores a pod that pends, or one that nobody has told of yet, which does not count.
func (p *play) ask() string {
	uid, pends := p.uid(), false
	if pod := p.live[p.name("p", 30)]; pod != nil && pod.Spec.NodeName == "" {
		uid, pends = pod.UID, true
	}
	n := p.at(p, p.name("n", 6))
	if n == nil {
		return "scored, but no node is there"
	}
	g := newAssumedPod(n, use{1 + p.random.Int64N(99), 5}, use{7, 1 + p.random.Int64N(99)}, p.clock)
	if pends {
		p.assumedNow[uid] = g
	}
	p.assumed.assume(idOf(uid), g)
	return "scored"
}

// settle rampUpTime, and forgets what has been scored long ago.
func (p *play) recount() {
	p.assumed.recount(p.clock, p.loads)
	for uid, e := range p.assumedNow {
		if p.clock.Sub(e.since) >= p.assumed.assumeTimeout {
			delete(p.assumedNow, uid)
		}
	}
}

// requested counts what is requested of a node.
func (p *play) requested(n *node) use {
	var sum use
	for _, pod := range p.live {
		if p.told[pod.UID] && pod.Spec.NodeName == n.name {
			sum = sum.plus(requestsOf(pod))
		}
	}
	for _, e := range p.assumedNow {
		if e.slot == n.slot {
			sum = sum.plus(e.requests)
		}
	}
	return sum
}

// workloadPods counts pods that do not belong to a node itself.
func (p *play) workloadPods(n *node) (count int64) {
	for _, pod := range p.live {
		if p.told[pod.UID] && pod.Spec.NodeName == n.name && pod.OwnerReferences[0].Kind == "ReplicaSet" {
			count++
		}
	}
	return count
}

// expected counts what the assumed should have for a node, by the formula in its head.
func (p *play) expected(n *node) (cpu, memory float64) {
	part := func(estimate int64, u snapshot.Use, started time.Time) float64 {
		f := 0.0
		if !started.IsZero() && !u.Sampled.IsZero() {
			f = min(max(u.Sampled.Sub(started).Seconds()/max(u.Window, rampUpTime).Seconds(), 0), 1)
		}
		return float64(estimate) * (1 - f)
	}
	for _, pod := range p.live {
		if !p.told[pod.UID] || pod.Spec.NodeName != n.name || p.clock.Sub(p.bound[pod.UID]) >= assumedLife {
			continue
		}
		estimate := estimateOf(pod, nil).within(n.allocatable)
		cpu += part(estimate.cpu, p.loads[n.name].CPU, p.started[pod.UID])
		memory += part(estimate.memory, p.loads[n.name].Memory, p.started[pod.UID])
	}
	for _, e := range p.assumedNow {
		if e.slot == n.slot {
			cpu, memory = cpu+float64(e.estimate.cpu), memory+float64(e.estimate.memory)
		}
	}
	return cpu, memory
}

func TestTotalsMatchARecount(t *testing.T) { testTotals(t, 0, 2) }

// testTotals plays a history for each seed from one up to another. A history depends on nothing but its seed.
func testTotals(t *testing.T, from, to uint64) {
	for seed := from; seed < to; seed++ {
		p := &play{
			T: t, random: rand.New(rand.NewPCG(seed, 1)), clock: noon,
			live: map[string]*corev1.Pod{}, told: map[types.UID]bool{}, bound: map[types.UID]time.Time{}, started: map[types.UID]time.Time{},
			assumedNow: map[types.UID]*assumedPod{}, there: map[string]*corev1.Node{}, loads: map[string]snapshot.NodeLoad{},
		}
		p.cluster = listed(t, func() time.Time { return p.clock })
		faded := 0
		for i := range 1500 {
			what := p.step()
			settled := p.random.IntN(2) == 0
			if settled {
				p.recount()
			}
			nodes, err := p.list(p.clock)
			require.NoError(t, err)
			require.Len(t, nodes, len(p.there))
			for _, n := range nodes {
				require.Equal(t, p.requested(&n), n.requested.load(), "%s after %s, at %d of seed %d", n.name, what, i, seed)
				require.Equal(t, p.workloadPods(&n), n.workloadPods.Load(), "%s after %s, at %d of seed %d", n.name, what, i, seed)
				if !settled {
					continue
				}
				cpu, memory := p.expected(&n)
				got := n.assumed.load()
				rounding := float64(len(p.live)) // down, of each pod
				require.InDelta(t, cpu, got.cpu, rounding, "%s after %s, at %d of seed %d", n.name, what, i, seed)
				require.InDelta(t, memory, got.memory, rounding, "%s after %s, at %d of seed %d", n.name, what, i, seed)
				if got.cpu > 0 && cpu != float64(int64(cpu)) {
					faded++
				}
			}
		}
		assert.Positive(t, faded, "some pods counted in part")
		require.NoError(t, p.pods.Replace(nil, ""))
		p.clock = p.clock.Add(time.Hour)
		p.recount()
		for name := range p.there {
			n := p.at(t, name)
			assert.Equal(t, [2]use{}, [2]use{n.requested.load(), n.assumed.load()})
		}
		assert.Len(t, p.nodeInfos, len(p.there))
		assert.Empty(t, p.assumed.bound)
		assert.Empty(t, p.assumed.assumed)
		assert.Empty(t, p.assumed.pending)
	}
}

// noon is now in the tests of what is watched.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func since(kind corev1.PodConditionType, status corev1.ConditionStatus, at time.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(at)}
}

func TestBoundAt(t *testing.T) {
	created := noon.Add(-time.Hour)
	for name, c := range map[string]struct {
		conditions []corev1.PodCondition
		want       time.Time
	}{
		"as the API says":         {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, noon.Add(-time.Minute))}, noon.Add(-time.Minute)},
		"at once":                 {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, created)}, created},
		"in the same moment":      {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, noon)}, noon},
		"never told":              {nil, noon},
		"in the future":           {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, noon.Add(time.Second))}, noon},
		"before it was made":      {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, created.Add(-time.Second))}, noon},
		"without a time":          {[]corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}, noon},
		"not, but bound by hand":  {[]corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionFalse, noon.Add(-time.Minute))}, noon},
		"of another condition":    {[]corev1.PodCondition{since(corev1.PodReady, corev1.ConditionTrue, noon.Add(-time.Minute))}, noon},
		"as one of several tells": {[]corev1.PodCondition{since(corev1.PodReady, corev1.ConditionTrue, noon), since(corev1.PodScheduled, corev1.ConditionTrue, noon.Add(-time.Minute))}, noon.Add(-time.Minute)},
	} {
		p := podOf()
		p.CreationTimestamp, p.Status.Conditions = metav1.NewTime(created), c.conditions
		assert.Equal(t, c.want, boundAt(p, noon), name)
	}
}

func TestPodRecord(t *testing.T) {
	p := podOf(declared("a", "1", "2", "100Mi", ""))
	r, ok := recordOf(p, nil, noon)
	assert.True(t, ok, "it may be bound soon")
	assert.Equal(t, record{}, r)
	assert.False(t, r.isBound())

	p.Spec.NodeName = "n"
	p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	p.Status.Conditions = []corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, noon.Add(-time.Minute))}
	want := record{node: unique.Make("n"), requests: use{1000, 100 * mib}, estimate: use{1700, 70 * mib}, bound: noon.Add(-time.Minute).UnixNano()}
	r, ok = recordOf(p, nil, noon)
	assert.True(t, ok)
	assert.Equal(t, want, r)
	assert.True(t, r.startedAt().IsZero())

	p.Status.ContainerStatuses = []corev1.ContainerStatus{ranSince(noon.Add(-time.Second))}
	r, _ = recordOf(p, nil, noon)
	assert.True(t, r.startedAt().Equal(noon.Add(-time.Second)))
	r, _ = recordOf(p, nil, noon.Add(assumedLife))
	assert.Equal(t, use{}, r.estimate, "the assumed does not need it any more")

	for _, end := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		p.Status.Phase = end
		_, ok = recordOf(p, nil, noon)
		assert.False(t, ok, end)
	}
}

func TestStartedAt(t *testing.T) {
	early, late := noon.Add(-time.Minute), noon.Add(-time.Second)
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(late)}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for name, c := range map[string]struct {
		containers []corev1.ContainerStatus
		want       time.Time // zero: not yet
	}{
		"no kubelet has told":    {nil, time.Time{}},
		"one of two":             {[]corev1.ContainerStatus{ranSince(early), {State: waiting}}, time.Time{}},
		"both":                   {[]corev1.ContainerStatus{ranSince(late), ranSince(early)}, late},
		"one has ended":          {[]corev1.ContainerStatus{ranSince(early), {State: ended}}, late},
		"one waits to run again": {[]corev1.ContainerStatus{ranSince(early), {State: waiting, LastTerminationState: ended}}, late},
	} {
		p := podOf()
		p.Status.ContainerStatuses = c.containers
		got := record{started: startedAt(p)}.startedAt()
		assert.True(t, c.want.Equal(got), "%s: %s", name, got)
	}
}

// With its key, in a map that is two thirds full, a pod takes some 120 bytes.
func TestPodRecordSize(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(record{})+unsafe.Sizeof(podID{}), uintptr(80))
}

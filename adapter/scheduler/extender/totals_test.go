package extender

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

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
			CPU:    snapshot.Use{Sampled: at, Window: time.Duration(p.random.IntN(3)) * 20 * time.Second},
			Memory: snapshot.Use{Sampled: at},
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

// ask scores a pod that pends, or one that no one has told of yet, which does not count.
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
			live: map[string]*corev1.Pod{}, told: map[types.UID]bool{}, bound: map[types.UID]time.Time{},
			started:    map[types.UID]time.Time{},
			assumedNow: map[types.UID]*assumedPod{}, there: map[string]*corev1.Node{},
			loads: map[string]snapshot.NodeLoad{},
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
				require.Equal(t, p.requested(&n), n.requested.load(), "%s after %s, at %d of seed %d", n.name, what, i,
					seed)
				require.Equal(t, p.workloadPods(&n), n.workloadPods.Load(), "%s after %s, at %d of seed %d", n.name,
					what, i, seed)
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

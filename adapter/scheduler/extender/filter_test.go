package extender

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
)

// filtered asks and tells the names of nodes that were refused, by why.
func filtered(q *evaluation, out []verdict) (refused map[string]string, r outcome, pool string) {
	r, pool = q.filter(out)
	refused = map[string]string{}
	for i := range out {
		if r.filters(&out[i]) {
			refused[out[i].name] = out[i].reason.String()
		}
	}
	return refused, r, pool
}

func TestLimits(t *testing.T) {
	rules := DefaultRules() // memory up to 15.2 of 16 GiB; the pod is expected to use 2 GiB and a core
	withCPU := rules
	withCPU.CPULimit = 0.9
	none := rules
	none.MemoryLimit = 0
	pod := podRequestOf(testPod(), nil)
	memory := float64(pod.estimate.memory) / gib
	at := func(upper float64) *node { // GiB
		n := testNode("n", 1, 1)
		n.memory.Upper = upper * gib
		return n
	}
	for name, test := range map[string]struct {
		rules  Rules
		node   func() *node
		refuse string
		gap    gap
	}{
		"room":      {rules, func() *node { return at(10) }, "", noGap},
		"just room": {rules, func() *node { return at(15.2 - memory) }, "", noGap},
		"no room":   {rules, func() *node { return at(15.2 - memory + 0.001) }, "memory", noGap},
		"no room by the assumed": {rules,
			func() *node { n := at(10); n.assumed.add(use{memory: 4 * gib}); return n }, "memory", noGap},
		"no limit":          {none, func() *node { return at(16) }, "", noGap},
		"no limit of CPU":   {rules, func() *node { n := at(1); n.cpu.Upper = 9; return n }, "", noGap},
		"a limit of CPU":    {withCPU, func() *node { n := at(1); n.cpu.Upper = 9; return n }, "cpu", noGap},
		"memory before CPU": {withCPU, func() *node { n := at(16); n.cpu.Upper = 9; return n }, "memory", noGap},
		"CPU without memory": {withCPU,
			func() *node { n := at(16); n.cpu.Upper = 9; n.memory = snapshot.Use{}; return n }, "cpu", noGap},
		"an empty node": {rules, func() *node { n := at(16); n.workloadPods.Store(0); return n }, "", noGap},
		"another pod will come": {rules,
			func() *node { n := at(16); n.workloadPods.Store(0); n.assumed.add(pod.estimate); return n }, "memory", noGap},
		"another part of one": {rules, func() *node {
			n := at(16)
			n.workloadPods.Store(0)
			n.assumed.add(use{memory: pod.estimate.memory - 1})
			return n
		}, "", noGap},
		"no prediction": {rules, func() *node { n := at(16); n.memory = snapshot.Use{}; return n }, "", gapPrediction},
		"one that is stale": {rules,
			func() *node { n := at(16); n.memory.Sampled = epoch.Add(-181 * time.Second); return n }, "", gapStale},
		"one that is just not": {rules,
			func() *node { n := at(16); n.memory.Sampled = epoch.Add(-180 * time.Second); return n }, "memory", noGap},
		"CPU that is stale": {withCPU,
			func() *node { n := at(1); n.cpu.Sampled = epoch.Add(-181 * time.Second); return n }, "", gapStale},
		"nothing allocatable": {rules, func() *node { n := at(16); n.allocatable = use{}; return n }, "",
			gapAllocatable},
	} {
		t.Run(name, func(t *testing.T) {
			n := test.node()
			q, out := evaluationOf(testSnapshot(n, testNode("room", 0, 0)), testPod(), test.rules, "n", "room")
			refused, r, _ := filtered(q, out)
			if test.refuse == "" {
				assert.Empty(t, refused)
			} else {
				assert.Equal(t, map[string]string{"n": test.refuse}, refused)
				assert.Equal(t, v1alpha1.FilteredElsewhere, messageOf(r, out[0].reason))
			}
			assert.Equal(t, enough, r)
			assert.Equal(t, test.gap, out[0].gap)
		})
	}
}

func TestExemptPodsPass(t *testing.T) {
	doomed, full := testNode("doomed", 1, 1), testNode("full", 1, 16)
	doomed.removing = "workers"
	for name, test := range map[string]struct {
		change func(p *corev1.Pod)
		exempt bool
	}{
		"any pod":              {func(*corev1.Pod) {}, false},
		"of a DaemonSet":       {func(p *corev1.Pod) { own(p, "DaemonSet", true) }, true},
		"of a ReplicaSet":      {func(p *corev1.Pod) { own(p, "ReplicaSet", true) }, false},
		"known to a DaemonSet": {func(p *corev1.Pod) { own(p, "DaemonSet", false) }, false},
		"critical":             {func(p *corev1.Pod) { p.Spec.Priority = new(int32(2_000_000_000)) }, true},
		"important":            {func(p *corev1.Pod) { p.Spec.Priority = new(int32(1_000_000_000)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := testPod()
			test.change(pod)
			q, out := evaluationOf(testSnapshot(doomed, full, testNode("room", 0, 0)), pod, DefaultRules(),
				"doomed", "full", "room", "stranger")
			refused, _, _ := filtered(q, out)
			if test.exempt {
				assert.Empty(t, refused)
			} else {
				assert.Equal(t, map[string]string{"doomed": "removing", "full": "memory"}, refused)
			}
		})
	}
}

func own(p *corev1.Pod, kind string, controller bool) {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner", Controller: &controller}}
}

func TestFilterWithoutASnapshot(t *testing.T) {
	doomed := testNode("doomed", 1, 1)
	doomed.removing = "workers"
	for name, age := range map[string]time.Duration{"just right": maxSnapshotAge, "too old": maxSnapshotAge + 1} {
		t.Run(name, func(t *testing.T) {
			v := testSnapshot(doomed, testNode("full", 1, 16), testNode("room", 1, 1))
			v.at = epoch.Add(-age)
			q, out := evaluationOf(v, testPod(), DefaultRules(), "doomed", "full", "room", "stranger")
			refused, _, _ := filtered(q, out)
			if age > maxSnapshotAge {
				assert.Equal(t, map[string]string{"doomed": "removing"}, refused)
				assert.Equal(t, []gap{noGap, gapSnapshot, gapSnapshot, gapSnapshot}, gapsOf(out))
			} else {
				assert.Equal(t, map[string]string{"doomed": "removing", "full": "memory"}, refused)
				assert.Equal(t, []gap{noGap, noGap, noGap, gapNode}, gapsOf(out))
			}
		})
	}
	q, out := evaluationOf(&clusterSnapshot{}, testPod(), DefaultRules(), "a", "b")
	refused, _, _ := filtered(q, out)
	assert.Empty(t, refused)
	assert.Equal(t, []gap{gapSnapshot, gapSnapshot}, gapsOf(out))
}

func gapsOf(verdicts []verdict) []gap {
	out := make([]gap, len(verdicts))
	for i, v := range verdicts {
		out[i] = v.gap
	}
	return out
}

// crowd is a snapshot of n nodes that are too full, and their names.
func crowd(n int) (*clusterSnapshot, []string) {
	v, names := testSnapshot(), make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("full-%d", i)
		v.nodes[names[i]] = testNode(names[i], 1, 16)
	}
	return v, names
}

func condition(reason, message string, since time.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason,
		Message:            message,
		LastTransitionTime: metav1.NewTime(since)}
}

func TestPodThatFitsNoNode(t *testing.T) {
	pool := Growth{Pool: "workers", Labels: map[string]string{"pool": "workers"},
		Taints: []corev1.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"},
			{Key: "soft", Effect: "PreferNoSchedule"}}}
	fitting := func() *corev1.Pod {
		p := testPod()
		p.Spec.NodeSelector = map[string]string{"pool": "workers"}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: "Exists"}}
		return p
	}
	refusedOf := func(since time.Duration, text string) corev1.PodCondition {
		return condition("Unschedulable", "0/3 nodes are available: 3 "+text+".", epoch.Add(-since))
	}
	maxWait := DefaultRules().MaxWait
	for name, test := range map[string]struct {
		change func(p *corev1.Pod)
		past   waitHistory
		want   outcome
	}{
		"a pool can grow": {func(*corev1.Pod) {}, waitHistory{}, waits},
		"not for a pod of another selector": {func(p *corev1.Pod) { p.Spec.NodeSelector["pool"] = "other" },
			waitHistory{}, passed},
		"for one of its affinity": {func(p *corev1.Pod) { p.Spec.Affinity = zones("pool", "workers") },
			waitHistory{}, waits},
		"not for one of another affinity": {func(p *corev1.Pod) { p.Spec.Affinity = zones("pool", "other") },
			waitHistory{}, passed},
		"not for one with an affinity that is wrong": {func(p *corev1.Pod) { p.Spec.Affinity = zones("-", "-!-") },
			waitHistory{}, passed},
		"not for one that tolerates nothing": {func(p *corev1.Pod) { p.Spec.Tolerations = nil }, waitHistory{},
			passed},
		"not for long": {func(*corev1.Pod) {}, waitHistory{since: epoch.Add(-maxWait)}, passed},
		"for a while": {func(*corev1.Pod) {},
			waitHistory{since: epoch.Add(-maxWait + 1)}, waits},
		"after a restart, as it was told": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{refusedOf(maxWait, v1alpha1.FilteredForLoad)}
		}, waitHistory{}, passed},
		"after a restart, before": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{refusedOf(maxWait-1, v1alpha1.FilteredForLoad)}
		}, waitHistory{}, waits},
		"memory is surer": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{refusedOf(maxWait, v1alpha1.FilteredForLoad)}
		}, waitHistory{since: epoch.Add(-time.Second)}, waits},
		"it has waited for something else": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{refusedOf(time.Hour, "Insufficient cpu")}
		}, waitHistory{}, waits},
		"it was sent elsewhere": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{refusedOf(time.Hour, v1alpha1.FilteredElsewhere)}
		}, waitHistory{}, waits},
		"it was gated": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{condition("SchedulingGated",
				v1alpha1.FilteredForLoad, epoch.Add(-time.Hour))}
		}, waitHistory{}, waits},
		"no one says since when, but it is new": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{condition("Unschedulable", v1alpha1.FilteredForLoad,
				time.Time{})}
		}, waitHistory{}, waits},
		"no one says since when, and it is old": {func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(epoch.Add(-maxWait))
			p.Status.Conditions = []corev1.PodCondition{condition("Unschedulable", v1alpha1.FilteredForLoad,
				time.Time{})}
		}, waitHistory{}, passed},
		"it may evict others": {func(p *corev1.Pod) { p.Spec.Priority = new(int32(1)) }, waitHistory{}, passed},
		"it may not": {func(p *corev1.Pod) {
			p.Spec.Priority, p.Spec.PreemptionPolicy = new(int32(1)), new(corev1.PreemptNever)
		}, waitHistory{}, waits},
		"it is below others": {func(p *corev1.Pod) { p.Spec.Priority = new(int32(-1)) }, waitHistory{}, waits},
	} {
		t.Run(name, func(t *testing.T) {
			doomed := testNode("doomed", 1, 1)
			doomed.removing = "workers"
			v, names := crowd(3)
			v.nodes["doomed"], v.growing = doomed,
				[]Growth{{Pool: "gpu", Taints: []corev1.Taint{{Key: "gpu", Effect: "NoSchedule"}}}, pool}
			pod := fitting()
			test.change(pod)
			q, out := evaluationOf(v, pod, DefaultRules(), append(names, "doomed")...)
			q.past = test.past
			refused, r, awaited := filtered(q, out)
			assert.Equal(t, test.want, r)
			if test.want == waits {
				assert.Equal(t, map[string]string{"full-0": "memory", "full-1": "memory", "full-2": "memory",
					"doomed": "removing"},
					refused)
				assert.Equal(t, "workers", awaited)
				assert.Equal(t, v1alpha1.FilteredForLoad, messageOf(r, overMemory))
				assert.Equal(t, v1alpha1.FilteredForRemoval, messageOf(r, removing))
			} else {
				assert.Equal(t, map[string]string{"doomed": "removing"}, refused)
				assert.Empty(t, awaited)
			}
		})
	}
}

// Where every pod has the same priority, whichever that is, none is evicted for another.
func TestPodsThatMayPreemptPass(t *testing.T) {
	for _, test := range []struct {
		pod, lowest int32
		want        outcome
	}{
		{1000, 1000, waits}, {1000, 999, passed}, {0, 0, waits}, {0, -10, passed}, {-10, -10, waits},
		{1_000_000_000, math.MaxInt32, waits},
	} {
		v, names := crowd(3)
		v.growing, v.lowest = []Growth{{Pool: "workers"}}, test.lowest
		pod := testPod()
		pod.Spec.Priority = &test.pod
		q, out := evaluationOf(v, pod, DefaultRules(), names...)
		r, _ := q.filter(out)
		assert.Equal(t, test.want, r, test)
	}
}

func zones(key, value string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key,
			Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}},
	}}}
}

func named(node string) *corev1.Affinity {
	a := zones("-", "-")
	a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name",
			Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}
	return a
}

func tainted(effect corev1.TaintEffect) *terms {
	return &terms{taints: []corev1.Taint{{Key: "control-plane", Effect: effect}}}
}

func TestNoWaitWhenAllNodesAreRemoved(t *testing.T) {
	doomed := testNode("doomed", 1, 1)
	doomed.removing = "workers"
	v := testSnapshot(doomed)
	v.growing = []Growth{{Pool: "workers"}}
	q, out := evaluationOf(v, testPod(), DefaultRules(), "doomed")
	refused, r, _ := filtered(q, out)
	assert.Equal(t, enough, r)
	assert.Equal(t, map[string]string{"doomed": "removing"}, refused)
}

// A scheduler does not ask about all nodes of a large cluster.
func TestFullSampleSendsPodsElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		asked  int
		past   waitHistory
		change func(n *node, p *corev1.Pod)
		want   outcome
	}{
		"another node has room":    {minSample, waitHistory{elsewhere: 2}, func(*node, *corev1.Pod) {}, elsewhere},
		"it was sent often enough": {minSample, waitHistory{elsewhere: 3}, func(*node, *corev1.Pod) {}, waits},
		"and has waited since": {minSample, waitHistory{elsewhere: 3, since: epoch.Add(-time.Hour)},
			func(*node, *corev1.Pod) {}, passed},
		"the other repels it": {minSample, waitHistory{},
			func(n *node, _ *corev1.Pod) { n.terms = tainted("NoSchedule") }, waits},
		"it tolerates the other": {minSample, waitHistory{}, func(n *node, p *corev1.Pod) {
			n.terms, p.Spec.Tolerations = tainted("NoExecute"), []corev1.Toleration{{Key: "control-plane",
				Operator: "Exists"}}
		}, elsewhere},
		"it does not select the other": {minSample, waitHistory{}, func(n *node, p *corev1.Pod) {
			n.terms, p.Spec.NodeSelector = &terms{labels: map[string]string{"arch": "arm64"}}, map[string]string{"arch": "amd64"}
		}, passed}, // nor what the pool grows by
		"it selects the other": {minSample, waitHistory{}, func(n *node, p *corev1.Pod) {
			n.terms, p.Spec.Affinity = &terms{labels: map[string]string{"arch": "arm64"}}, zones("arch", "arm64")
		}, elsewhere},
		"it selects the other by name": {minSample, waitHistory{}, func(n *node, p *corev1.Pod) {
			n.terms, p.Spec.Affinity = &terms{}, named("other")
		}, elsewhere},
		"it selects another by name": {minSample, waitHistory{}, func(n *node, p *corev1.Pod) {
			n.terms, p.Spec.Affinity = &terms{}, named("another")
		}, passed},
		"it was asked about all": {minSample - 1, waitHistory{}, func(*node, *corev1.Pod) {}, waits},
		"the other is requested": {minSample, waitHistory{},
			func(n *node, _ *corev1.Pod) { n.requested.add(use{cpu: 3001}) }, waits},
		"its memory is": {minSample, waitHistory{},
			func(n *node, _ *corev1.Pod) { n.requested.add(use{memory: 14*gib + 1}) }, waits},
		"just not": {minSample, waitHistory{},
			func(n *node, _ *corev1.Pod) { n.requested.add(use{3000, 14 * gib}) }, elsewhere},
		"the other is not Ready": {minSample, waitHistory{},
			func(n *node, _ *corev1.Pod) { n.readySince = time.Time{} }, waits},
		"the other is going": {minSample, waitHistory{},
			func(n *node, _ *corev1.Pod) { n.removing = "workers" }, waits},
		"the other is full, too": {minSample, waitHistory{},
			func(n *node, _ *corev1.Pod) { n.memory.Upper = 16 * gib }, waits},
		"the other is not predicted": {minSample, waitHistory{},
			func(n *node, _ *corev1.Pod) { n.memory = snapshot.Use{} }, elsewhere},
		"the pod may evict others": {minSample, waitHistory{},
			func(_ *node, p *corev1.Pod) { p.Spec.Priority = new(int32(1)) }, passed},
		"the pod has waited too long": {minSample, waitHistory{since: epoch.Add(-time.Hour)},
			func(n *node, _ *corev1.Pod) { n.removing = "workers" }, passed},
	} {
		t.Run(name, func(t *testing.T) {
			v, names := crowd(test.asked)
			pod, other := testPod(), testNode("other", 1, 1)
			test.change(other, pod)
			v.nodes["other"], v.growing = other, []Growth{{Pool: "workers"}}
			q, out := evaluationOf(v, pod, DefaultRules(), names...)
			q.past = test.past
			refused, r, _ := filtered(q, out)
			assert.Equal(t, test.want, r)
			if r == passed {
				assert.Empty(t, refused)
			} else {
				assert.Len(t, refused, len(names))
			}
		})
	}
}

// Others were evicted for it, and samples still show them.
func TestNominatedNodeIsFilteredOnlyForRemoval(t *testing.T) {
	v, names := crowd(2)
	pod := testPod()
	pod.Status.NominatedNodeName = names[0]
	v.growing = []Growth{{Pool: "workers"}}
	q, out := evaluationOf(v, pod, DefaultRules(), names[0])
	refused, _, _ := filtered(q, out)
	assert.Empty(t, refused)
	assert.Equal(t, nominated, out[0].reason)
	q, out = evaluationOf(v, pod, DefaultRules(), names...)
	refused, _, _ = filtered(q, out)
	assert.Equal(t, map[string]string{names[1]: "memory"}, refused)
	v.nodes[names[0]].removing = "workers"
	q, out = evaluationOf(v, pod, DefaultRules(), names[0])
	refused, _, _ = filtered(q, out)
	assert.Equal(t, map[string]string{names[0]: "removing"}, refused)
}

func TestMaxWaitRunsFromTheFirstDecision(t *testing.T) {
	v, names := crowd(2)
	v.growing = []Growth{{Pool: "workers"}}
	r := newRig(DefaultRules(), v)
	now := epoch
	r.handler.now = func() time.Time { v.at = now; keepFresh(v, now); return now }
	for _, step := range []struct {
		after time.Duration
		want  outcome
	}{{0, waits}, {r.rules.MaxWait / 2, waits}, {r.rules.MaxWait - 1, waits}, {r.rules.MaxWait, passed},
		{r.rules.MaxWait + time.Minute, passed}} {
		now = epoch.Add(step.after)
		q, found := r.handler.evaluation(testPod(), names, r.handler.take())
		r.handler.filter(q, found)
		assert.Equal(t, step.want, found.room, step.after)
	}
}

func keepFresh(v *clusterSnapshot, now time.Time) {
	for _, n := range v.nodes {
		n.cpu.Sampled, n.memory.Sampled = now, now
	}
}

func TestWaitingPodsExpire(t *testing.T) {
	w := newWaitingPods()
	w.note("a", waits, epoch, epoch)
	w.note("a", waits, epoch.Add(time.Minute), epoch.Add(time.Minute))
	w.note("b", elsewhere, epoch, epoch.Add(10*time.Minute))
	w.note("b", elsewhere, epoch, epoch.Add(10*time.Minute))
	w.note("c", passed, epoch, epoch)
	w.note("d", enough, epoch, epoch)
	w.note("", waits, epoch, epoch)
	assert.Equal(t, waitHistory{since: epoch}, w.of("a"))
	assert.Equal(t, waitHistory{elsewhere: 2}, w.of("b"))
	assert.Len(t, w.pods, 2)
	w.note("e", waits, epoch, epoch.Add(16*time.Minute))
	assert.Equal(t, waitHistory{}, w.of("a"))
	assert.Equal(t, waitHistory{elsewhere: 2}, w.of("b"))
	assert.Len(t, w.pods, 2)
}

func TestWaitingPodsAreBounded(t *testing.T) {
	w := newWaitingPods()
	for i := range maxWaiting + 10 {
		w.note(uid(i), waits, epoch, epoch)
	}
	require.Len(t, w.pods, maxWaiting)
	w.note(uid(0), elsewhere, epoch, epoch)
	assert.Equal(t, waitHistory{epoch, 1}, w.of(uid(0)))
}

func TestEstimateWithoutRequests(t *testing.T) {
	p := testPod()
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	s := podRequestOf(p, nil)
	assert.Equal(t, int64(2000), s.scheduled.cpu)
	assert.Equal(t, s.estimate.memory, s.scheduled.memory)
	assert.Positive(t, s.scheduled.memory)
	assert.Equal(t, use{cpu: 2000}, s.requests)
}

func uid(i int) types.UID { return types.UID(fmt.Sprint("uid-", i)) }

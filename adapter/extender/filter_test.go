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

	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
)

// filtered asks and tells the names of nodes that were refused, by why.
func filtered(q *question, out []verdict) (refused map[string]string, r room, pool string) {
	r, pool = q.filter(out)
	refused = map[string]string{}
	for i := range out {
		if r.refuses(&out[i]) {
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
	noLedger := rules
	noLedger.NoLedger = true
	pod := subjectOf(testPod(), nil)
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
		"room":                  {rules, func() *node { return at(10) }, "", noGap},
		"just room":             {rules, func() *node { return at(15.2 - memory) }, "", noGap},
		"no room":               {rules, func() *node { return at(15.2 - memory + 0.001) }, "memory", noGap},
		"no room by the ledger": {rules, func() *node { n := at(10); n.ledger.add(use{memory: 4 * gib}); return n }, "memory", noGap},
		"no ledger":             {noLedger, func() *node { n := at(10); n.ledger.add(use{memory: 4 * gib}); return n }, "", noGap},
		"no limit":              {none, func() *node { return at(16) }, "", noGap},
		"no limit of CPU":       {rules, func() *node { n := at(1); n.cpu.Upper = 9; return n }, "", noGap},
		"a limit of CPU":        {withCPU, func() *node { n := at(1); n.cpu.Upper = 9; return n }, "cpu", noGap},
		"memory before CPU":     {withCPU, func() *node { n := at(16); n.cpu.Upper = 9; return n }, "memory", noGap},
		"CPU without memory":    {withCPU, func() *node { n := at(16); n.cpu.Upper = 9; n.memory = snapshot.Use{}; return n }, "cpu", noGap},
		"an empty node":         {rules, func() *node { n := at(16); n.guests.Store(0); return n }, "", noGap},
		"another pod will come": {rules, func() *node { n := at(16); n.guests.Store(0); n.ledger.add(pod.estimate); return n }, "memory", noGap},
		"another part of one": {rules, func() *node {
			n := at(16)
			n.guests.Store(0)
			n.ledger.add(use{memory: pod.estimate.memory - 1})
			return n
		}, "", noGap},
		"no prediction":        {rules, func() *node { n := at(16); n.memory = snapshot.Use{}; return n }, "", gapPrediction},
		"one that is stale":    {rules, func() *node { n := at(16); n.memory.Sampled = epoch.Add(-181 * time.Second); return n }, "", gapStale},
		"one that is just not": {rules, func() *node { n := at(16); n.memory.Sampled = epoch.Add(-180 * time.Second); return n }, "memory", noGap},
		"CPU that is stale":    {withCPU, func() *node { n := at(1); n.cpu.Sampled = epoch.Add(-181 * time.Second); return n }, "", gapStale},
		"nothing allocatable":  {rules, func() *node { n := at(16); n.allocatable = use{}; return n }, "", gapAllocatable},
	} {
		t.Run(name, func(t *testing.T) {
			n := test.node()
			q, out := questionOf(testView(n, testNode("room", 0, 0)), testPod(), test.rules, "n", "room")
			refused, r, _ := filtered(q, out)
			if test.refuse == "" {
				assert.Empty(t, refused)
			} else {
				assert.Equal(t, map[string]string{"n": test.refuse}, refused)
				assert.Equal(t, v1alpha1.RefusedElsewhere, r.refusal(out[0].reason))
			}
			assert.Equal(t, enough, r)
			assert.Equal(t, test.gap, out[0].gap)
		})
	}
}

func TestWhoIsRefusedNothing(t *testing.T) {
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
			q, out := questionOf(testView(doomed, full, testNode("room", 0, 0)), pod, DefaultRules(), "doomed", "full", "room", "stranger")
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

func TestWithoutAViewAllPassButWhatIsKnownToGo(t *testing.T) {
	doomed := testNode("doomed", 1, 1)
	doomed.removing = "workers"
	for name, age := range map[string]time.Duration{"just right": maxViewAge, "too old": maxViewAge + 1} {
		t.Run(name, func(t *testing.T) {
			v := testView(doomed, testNode("full", 1, 16), testNode("room", 1, 1))
			v.at = epoch.Add(-age)
			q, out := questionOf(v, testPod(), DefaultRules(), "doomed", "full", "room", "stranger")
			refused, _, _ := filtered(q, out)
			if age > maxViewAge {
				assert.Equal(t, map[string]string{"doomed": "removing"}, refused)
				assert.Equal(t, []gap{noGap, gapView, gapView, gapView}, gapsOf(out))
			} else {
				assert.Equal(t, map[string]string{"doomed": "removing", "full": "memory"}, refused)
				assert.Equal(t, []gap{noGap, noGap, noGap, gapNode}, gapsOf(out))
			}
		})
	}
	q, out := questionOf(&view{}, testPod(), DefaultRules(), "a", "b")
	refused, _, _ := filtered(q, out)
	assert.Empty(t, refused)
	assert.Equal(t, []gap{gapView, gapView}, gapsOf(out))
}

func gapsOf(verdicts []verdict) []gap {
	out := make([]gap, len(verdicts))
	for i, v := range verdicts {
		out[i] = v.gap
	}
	return out
}

// crowd is a view of n nodes that are too full, and their names.
func crowd(n int) (*view, []string) {
	v, names := testView(), make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("full-%d", i)
		v.nodes[names[i]] = testNode(names[i], 1, 16)
	}
	return v, names
}

func condition(reason, message string, since time.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(since)}
}

func TestWhatBecomesOfAPodWithoutRoom(t *testing.T) {
	pool := Growth{Pool: "workers", Labels: map[string]string{"pool": "workers"}, Taints: []corev1.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"}, {Key: "soft", Effect: "PreferNoSchedule"}}}
	fitting := func() *corev1.Pod {
		p := testPod()
		p.Spec.NodeSelector = map[string]string{"pool": "workers"}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: "Exists"}}
		return p
	}
	refusedOf := func(since time.Duration, text string) corev1.PodCondition {
		return condition("Unschedulable", "0/3 nodes are available: 3 "+text+".", epoch.Add(-since))
	}
	patience := DefaultRules().Patience
	for name, test := range map[string]struct {
		change func(p *corev1.Pod)
		past   past
		want   room
	}{
		"a pool can grow":                            {func(*corev1.Pod) {}, past{}, waits},
		"not for a pod of another selector":          {func(p *corev1.Pod) { p.Spec.NodeSelector["pool"] = "other" }, past{}, passed},
		"for one of its affinity":                    {func(p *corev1.Pod) { p.Spec.Affinity = zones("pool", "workers") }, past{}, waits},
		"not for one of another affinity":            {func(p *corev1.Pod) { p.Spec.Affinity = zones("pool", "other") }, past{}, passed},
		"not for one with an affinity that is wrong": {func(p *corev1.Pod) { p.Spec.Affinity = zones("-", "-!-") }, past{}, passed},
		"not for one that tolerates nothing":         {func(p *corev1.Pod) { p.Spec.Tolerations = nil }, past{}, passed},
		"not for long":                               {func(*corev1.Pod) {}, past{since: epoch.Add(-patience)}, passed},
		"for a while":                                {func(*corev1.Pod) {}, past{since: epoch.Add(-patience + 1)}, waits},
		"after a restart, as it was told": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{refusedOf(patience, v1alpha1.RefusedForLoad)}
		}, past{}, passed},
		"after a restart, before": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{refusedOf(patience-1, v1alpha1.RefusedForLoad)}
		}, past{}, waits},
		"memory is surer": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{refusedOf(patience, v1alpha1.RefusedForLoad)}
		}, past{since: epoch.Add(-time.Second)}, waits},
		"it has waited for something else": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{refusedOf(time.Hour, "Insufficient cpu")}
		}, past{}, waits},
		"it was sent elsewhere": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{refusedOf(time.Hour, v1alpha1.RefusedElsewhere)}
		}, past{}, waits},
		"it was gated": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{condition("SchedulingGated", v1alpha1.RefusedForLoad, epoch.Add(-time.Hour))}
		}, past{}, waits},
		"nobody says since when, but it is new": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{condition("Unschedulable", v1alpha1.RefusedForLoad, time.Time{})}
		}, past{}, waits},
		"nobody says since when, and it is old": {func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(epoch.Add(-patience))
			p.Status.Conditions = []corev1.PodCondition{condition("Unschedulable", v1alpha1.RefusedForLoad, time.Time{})}
		}, past{}, passed},
		"it may evict others": {func(p *corev1.Pod) { p.Spec.Priority = new(int32(1)) }, past{}, passed},
		"it may not": {func(p *corev1.Pod) {
			p.Spec.Priority, p.Spec.PreemptionPolicy = new(int32(1)), new(corev1.PreemptNever)
		}, past{}, waits},
		"it is below others": {func(p *corev1.Pod) { p.Spec.Priority = new(int32(-1)) }, past{}, waits},
	} {
		t.Run(name, func(t *testing.T) {
			doomed := testNode("doomed", 1, 1)
			doomed.removing = "workers"
			v, names := crowd(3)
			v.nodes["doomed"], v.growing = doomed, []Growth{{Pool: "gpu", Taints: []corev1.Taint{{Key: "gpu", Effect: "NoSchedule"}}}, pool}
			pod := fitting()
			test.change(pod)
			q, out := questionOf(v, pod, DefaultRules(), append(names, "doomed")...)
			q.past = test.past
			refused, r, awaited := filtered(q, out)
			assert.Equal(t, test.want, r)
			if test.want == waits {
				assert.Equal(t, map[string]string{"full-0": "memory", "full-1": "memory", "full-2": "memory", "doomed": "removing"}, refused)
				assert.Equal(t, "workers", awaited)
				assert.Equal(t, v1alpha1.RefusedForLoad, r.refusal(overMemory))
				assert.Equal(t, v1alpha1.RefusedForRemoval, r.refusal(removing))
			} else {
				assert.Equal(t, map[string]string{"doomed": "removing"}, refused)
				assert.Empty(t, awaited)
			}
		})
	}
}

// Where every pod has the same priority, whichever that is, none is evicted for another.
func TestPodsAboveOthersMayEvictThem(t *testing.T) {
	for _, test := range []struct {
		pod, lowest int32
		want        room
	}{
		{1000, 1000, waits}, {1000, 999, passed}, {0, 0, waits}, {0, -10, passed}, {-10, -10, waits}, {1_000_000_000, math.MaxInt32, waits},
	} {
		v, names := crowd(3)
		v.growing, v.lowest = []Growth{{Pool: "workers"}}, test.lowest
		pod := testPod()
		pod.Spec.Priority = &test.pod
		q, out := questionOf(v, pod, DefaultRules(), names...)
		r, _ := q.filter(out)
		assert.Equal(t, test.want, r, test)
	}
}

func zones(key, value string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}},
	}}}
}

func named(node string) *corev1.Affinity {
	a := zones("-", "-")
	a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}
	return a
}

func tainted(effect corev1.TaintEffect) *terms {
	return &terms{taints: []corev1.Taint{{Key: "control-plane", Effect: effect}}}
}

func TestNodesThatAreAllGoingAreNoReasonToWait(t *testing.T) {
	doomed := testNode("doomed", 1, 1)
	doomed.removing = "workers"
	v := testView(doomed)
	v.growing = []Growth{{Pool: "workers"}}
	q, out := questionOf(v, testPod(), DefaultRules(), "doomed")
	refused, r, _ := filtered(q, out)
	assert.Equal(t, enough, r)
	assert.Equal(t, map[string]string{"doomed": "removing"}, refused)
}

// A scheduler does not ask about all nodes of a large cluster.
func TestAPodIsSentElsewhereWhereASampleIsFull(t *testing.T) {
	for name, test := range map[string]struct {
		asked  int
		past   past
		change func(n *node, p *corev1.Pod)
		want   room
	}{
		"another node has room":    {leastSample, past{elsewhere: 2}, func(*node, *corev1.Pod) {}, elsewhere},
		"it was sent often enough": {leastSample, past{elsewhere: 3}, func(*node, *corev1.Pod) {}, waits},
		"and has waited since":     {leastSample, past{elsewhere: 3, since: epoch.Add(-time.Hour)}, func(*node, *corev1.Pod) {}, passed},
		"the other repels it":      {leastSample, past{}, func(n *node, _ *corev1.Pod) { n.terms = tainted("NoSchedule") }, waits},
		"it tolerates the other": {leastSample, past{}, func(n *node, p *corev1.Pod) {
			n.terms, p.Spec.Tolerations = tainted("NoExecute"), []corev1.Toleration{{Key: "control-plane", Operator: "Exists"}}
		}, elsewhere},
		"it does not select the other": {leastSample, past{}, func(n *node, p *corev1.Pod) {
			n.terms, p.Spec.NodeSelector = &terms{labels: map[string]string{"arch": "arm64"}}, map[string]string{"arch": "amd64"}
		}, passed}, // nor what the pool grows by
		"it selects the other": {leastSample, past{}, func(n *node, p *corev1.Pod) {
			n.terms, p.Spec.Affinity = &terms{labels: map[string]string{"arch": "arm64"}}, zones("arch", "arm64")
		}, elsewhere},
		"it selects the other by name": {leastSample, past{}, func(n *node, p *corev1.Pod) {
			n.terms, p.Spec.Affinity = &terms{}, named("other")
		}, elsewhere},
		"it selects another by name": {leastSample, past{}, func(n *node, p *corev1.Pod) {
			n.terms, p.Spec.Affinity = &terms{}, named("another")
		}, passed},
		"it was asked about all":      {leastSample - 1, past{}, func(*node, *corev1.Pod) {}, waits},
		"the other is requested":      {leastSample, past{}, func(n *node, _ *corev1.Pod) { n.requested.add(use{cpu: 3001}) }, waits},
		"its memory is":               {leastSample, past{}, func(n *node, _ *corev1.Pod) { n.requested.add(use{memory: 14*gib + 1}) }, waits},
		"just not":                    {leastSample, past{}, func(n *node, _ *corev1.Pod) { n.requested.add(use{3000, 14 * gib}) }, elsewhere},
		"the other is not Ready":      {leastSample, past{}, func(n *node, _ *corev1.Pod) { n.readySince = time.Time{} }, waits},
		"the other is going":          {leastSample, past{}, func(n *node, _ *corev1.Pod) { n.removing = "workers" }, waits},
		"the other is full, too":      {leastSample, past{}, func(n *node, _ *corev1.Pod) { n.memory.Upper = 16 * gib }, waits},
		"the other is not predicted":  {leastSample, past{}, func(n *node, _ *corev1.Pod) { n.memory = snapshot.Use{} }, elsewhere},
		"the pod may evict others":    {leastSample, past{}, func(_ *node, p *corev1.Pod) { p.Spec.Priority = new(int32(1)) }, passed},
		"the pod has waited too long": {leastSample, past{since: epoch.Add(-time.Hour)}, func(n *node, _ *corev1.Pod) { n.removing = "workers" }, passed},
	} {
		t.Run(name, func(t *testing.T) {
			v, names := crowd(test.asked)
			pod, other := testPod(), testNode("other", 1, 1)
			test.change(other, pod)
			v.nodes["other"], v.growing = other, []Growth{{Pool: "workers"}}
			q, out := questionOf(v, pod, DefaultRules(), names...)
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
func TestANominatedNodeIsRefusedForRemovalAlone(t *testing.T) {
	v, names := crowd(2)
	pod := testPod()
	pod.Status.NominatedNodeName = names[0]
	v.growing = []Growth{{Pool: "workers"}}
	q, out := questionOf(v, pod, DefaultRules(), names[0])
	refused, _, _ := filtered(q, out)
	assert.Empty(t, refused)
	assert.Equal(t, nominated, out[0].reason)
	q, out = questionOf(v, pod, DefaultRules(), names...)
	refused, _, _ = filtered(q, out)
	assert.Equal(t, map[string]string{names[1]: "memory"}, refused)
	v.nodes[names[0]].removing = "workers"
	q, out = questionOf(v, pod, DefaultRules(), names[0])
	refused, _, _ = filtered(q, out)
	assert.Equal(t, map[string]string{names[0]: "removing"}, refused)
}

func TestPatienceIsCountedFromTheFirstRefusal(t *testing.T) {
	v, names := crowd(2)
	v.growing = []Growth{{Pool: "workers"}}
	r := newRig(DefaultRules(), v)
	now := epoch
	r.door.now = func() time.Time { v.at = now; keepFresh(v, now); return now }
	for _, step := range []struct {
		after time.Duration
		want  room
	}{{0, waits}, {r.rules.Patience / 2, waits}, {r.rules.Patience - 1, waits}, {r.rules.Patience, passed}, {r.rules.Patience + time.Minute, passed}} {
		now = epoch.Add(step.after)
		desk := r.door.take()
		a := asked{pod: testPod()}
		for _, name := range names {
			a.names = append(a.names, []byte(name))
		}
		q, found := r.door.question(a, desk)
		r.door.filter(q, found, desk)
		assert.Equal(t, step.want, found.room, step.after)
	}
}

func keepFresh(v *view, now time.Time) {
	for _, n := range v.nodes {
		n.cpu.Sampled, n.memory.Sampled = now, now
	}
}

func TestPodsThatWaitAreForgotten(t *testing.T) {
	w := newWaiting()
	w.note("a", waits, epoch, epoch)
	w.note("a", waits, epoch.Add(time.Minute), epoch.Add(time.Minute))
	w.note("b", elsewhere, epoch, epoch.Add(10*time.Minute))
	w.note("b", elsewhere, epoch, epoch.Add(10*time.Minute))
	w.note("c", passed, epoch, epoch)
	w.note("d", enough, epoch, epoch)
	w.note("", waits, epoch, epoch)
	assert.Equal(t, past{since: epoch}, w.of("a"))
	assert.Equal(t, past{elsewhere: 2}, w.of("b"))
	assert.Len(t, w.pods, 2)
	w.note("e", waits, epoch, epoch.Add(16*time.Minute))
	assert.Equal(t, past{}, w.of("a"))
	assert.Equal(t, past{elsewhere: 2}, w.of("b"))
	assert.Len(t, w.pods, 2)
}

func TestPodsThatWaitAreBounded(t *testing.T) {
	w := newWaiting()
	for i := range maxWaiting + 10 {
		w.note(uid(i), waits, epoch, epoch)
	}
	require.Len(t, w.pods, maxWaiting)
	w.note(uid(0), elsewhere, epoch, epoch)
	assert.Equal(t, past{epoch, 1}, w.of(uid(0)))
}

func TestResourcesOfNothingAreEstimated(t *testing.T) {
	p := testPod()
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	s := subjectOf(p, nil)
	assert.Equal(t, int64(2000), s.scheduled.cpu)
	assert.Equal(t, s.estimate.memory, s.scheduled.memory)
	assert.Positive(t, s.scheduled.memory)
	assert.Equal(t, use{cpu: 2000}, s.requests)
}

func uid(i int) types.UID { return types.UID(fmt.Sprint("uid-", i)) }

package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type change = func(*corev1.Pod)

// onNode is a running, ready pod of a ReplicaSet that requests half a CPU and a GiB on the node n.
func onNode(name string, changes ...change) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		Labels: map[string]string{"app": "web"}}}
	ownedBy("ReplicaSet")(p)
	p.Spec.NodeName = "n"
	p.Spec.Containers = []corev1.Container{{Name: "main",
		Resources: corev1.ResourceRequirements{Requests: quantities("500m", "1Gi")}}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, c := range changes {
		c(p)
	}
	return p
}

func quantities(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}
}

func unschedulable(since time.Time) change {
	return func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(since)}}
	}
}

func budgetFor(name string, allowed int32,
	changes ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed,
		DesiredHealthy: 2, CurrentHealthy: 1}
	for _, c := range changes {
		c(b)
	}
	return b
}

// see builds a cluster of one node, and of no volumes.
func see(node *corev1.Node, pods []*corev1.Pod, pdbs ...*policyv1.PodDisruptionBudget) *Cluster {
	return seeStorage(newStorage(), node, pods, pdbs...)
}

func seeStorage(s storage, node *corev1.Node, pods []*corev1.Pod, pdbs ...*policyv1.PodDisruptionBudget) *Cluster {
	p := parts{nodes: []*corev1.Node{node}}
	var records []*record
	for _, pod := range pods {
		if r := recordOf(pod); r != nil {
			records = append(records, r)
		}
	}
	for _, b := range pdbs {
		p.budgets = append(p.budgets, budgetOf(b))
	}
	load, unschedulable := splitPods(records)
	p.load, p.waiting = load, s.demands(unschedulable)
	p.volumes, p.attached = s.volumeRulesOfBound(slices.Values(records))
	return build(epoch, p)
}

func nodeNamed(name string, annotations ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, a := range annotations {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, a, "true")
	}
	return n
}

func readyNode(name string) *corev1.Node {
	n := nodeNamed(name)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func TestBlocked(t *testing.T) {
	unready := func(p *corev1.Pod) { p.Status.Conditions = nil }
	starting := func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	always := func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow) }
	healthy := func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 2 }
	stale := func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }
	selector := func(s *metav1.LabelSelector) func(*policyv1.PodDisruptionBudget) {
		return func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = s }
	}
	const exhausted = "the pod default/p is covered by the PodDisruptionBudget b, which allows no disruption now"
	for name, test := range map[string]struct {
		node *corev1.Node
		pods []*corev1.Pod
		pdbs []*policyv1.PodDisruptionBudget
		want string
	}{
		"nothing":          {},
		"pods that may go": {pods: []*corev1.Pod{onNode("p"), onNode("q", ownedBy("DaemonSet"))}},
		"annotated Node":   {node: nodeNamed("n", Keep), want: "the Node is annotated foresail.dev/do-not-disrupt=true"},
		"a bare pod": {pods: []*corev1.Pod{onNode("p"),
			onNode("q", func(p *corev1.Pod) { p.OwnerReferences = nil })},
			want: "the pod default/q has no controller that would bring it back"},
		"the first of two": {pods: []*corev1.Pod{onNode("z", annotated(Keep, "true")),
			onNode("q", annotated(SafeToEvict, "false"))},
			want: "the pod default/q is annotated cluster-autoscaler.kubernetes.io/safe-to-evict=false"},
		"a bare pod, ended": {pods: []*corev1.Pod{onNode("q",
			func(p *corev1.Pod) { p.OwnerReferences, p.Status.Phase = nil, corev1.PodSucceeded })}},
		"kept, but leaving": {pods: []*corev1.Pod{onNode("p", annotated(Keep, "true"), leaving)}},
		"on another node": {pods: []*corev1.Pod{onNode("p", annotated(Keep, "true"),
			func(p *corev1.Pod) { p.Spec.NodeName = "m" })}},
		"budget with some": {pods: []*corev1.Pod{onNode("p")}, pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 1)}},
		"budget, exhausted": {pods: []*corev1.Pod{onNode("p")},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0)}, want: exhausted},
		"exhausted of all": {pods: []*corev1.Pod{onNode("p")},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0, selector(&metav1.LabelSelector{}))}, want: exhausted},
		"exhausted of none": {pods: []*corev1.Pod{onNode("p")},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0, selector(nil))}},
		"exhausted of some": {pods: []*corev1.Pod{onNode("p")},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0,
				selector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app",
					Operator: metav1.LabelSelectorOpExists}}}))}, want: exhausted},
		"exhausted of other": {pods: []*corev1.Pod{onNode("p")},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0,
				selector(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}))}},
		"exhausted elsewhere": {pods: []*corev1.Pod{onNode("p")},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0,
				func(b *policyv1.PodDisruptionBudget) { b.Namespace = "other" })}},
		"exhausted long ago": {pods: []*corev1.Pod{onNode("p")},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0, stale)}},
		"two budgets": {pods: []*corev1.Pod{onNode("p")},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("c", 1), budgetFor("b", 1)},
			want: "the pod default/p is covered by more than one PodDisruptionBudget (b, c), which the eviction API refuses"},
		"of a DaemonSet": {pods: []*corev1.Pod{onNode("p", ownedBy("DaemonSet"))},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0)}},
		"kept for 4h": {pods: []*corev1.Pod{onNode("p", annotated(Keep, "4h"), started(time.Hour))},
			want: "the pod default/p is annotated foresail.dev/do-not-disrupt=4h, until 2026-01-02T06:04:05Z"},
		"no longer kept": {pods: []*corev1.Pod{onNode("p", annotated(Keep, "4h"), started(5*time.Hour))}},
		"tolerates a drain": {pods: []*corev1.Pod{onNode("p", tolerates("", "", ""))},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0)}, want: exhausted},
		"starting": {pods: []*corev1.Pod{onNode("p", starting)},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0)}},
		"leaving": {pods: []*corev1.Pod{onNode("p", leaving)},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0)}},
		"unready": {pods: []*corev1.Pod{onNode("p", unready)},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0)}, want: exhausted},
		"unready, may go": {pods: []*corev1.Pod{onNode("p", unready)},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0, always)}},
		"unready, not missed": {pods: []*corev1.Pod{onNode("p", unready)},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0, healthy)}},
		"ready, unready may go": {pods: []*corev1.Pod{onNode("p")},
			pdbs: []*policyv1.PodDisruptionBudget{budgetFor("b", 0, always)}, want: exhausted},
	} {
		t.Run(name, func(t *testing.T) {
			if test.node == nil {
				test.node = nodeNamed("n")
			}
			assert.Equal(t, test.want, see(test.node, test.pods, test.pdbs...).Nodes[0].Blocked)
		})
	}
}

// TestReplacements: pods that a drain does not evict also need another node once theirs is gone.
func TestReplacements(t *testing.T) {
	c := see(nodeNamed("n"), []*corev1.Pod{
		onNode("a"), onNode("b", tolerates("", "", "")), onNode("c", ownedBy("DaemonSet")),
		onNode("d", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }),
	})
	var names []string
	for _, p := range c.Replacements(&c.Nodes[0]) {
		names = append(names, p.Pod.Name)
	}
	assert.Equal(t, []string{"a", "b"}, names)
}

func TestPending(t *testing.T) {
	reason := func(reason string) change {
		return func(p *corev1.Pod) { p.Status.Conditions[0].Reason = reason }
	}
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		since time.Time // zero = it is none
	}{
		"unschedulable": {onNode("p", unschedulable(epoch.Add(-time.Minute))), epoch.Add(-time.Minute)},
		"gated": {onNode("p", unschedulable(epoch), reason(corev1.PodReasonSchedulingGated)),
			time.Time{}},
		"failing to be scheduled": {onNode("p", unschedulable(epoch), reason(corev1.PodReasonSchedulerError)),
			time.Time{}},
		"not tried yet": {onNode("p", unschedulable(epoch), func(p *corev1.Pod) { p.Status.Conditions = nil }),
			time.Time{}},
		"scheduled since": {onNode("p", unschedulable(epoch),
			func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }), time.Time{}},
		"pulling its image": {onNode("p", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
			time.Time{}},
		"bound a moment ago": {onNode("p", unschedulable(epoch), func(p *corev1.Pod) { p.Spec.NodeName = "n" }),
			time.Time{}},
		"leaving": {onNode("p", unschedulable(epoch),
			func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), time.Time{}},
		"ended": {onNode("p", unschedulable(epoch),
			func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), time.Time{}},
		"promised a node": {onNode("p", unschedulable(epoch),
			func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }), time.Time{}},
		"promised a node that is gone": {onNode("p", unschedulable(epoch),
			func(p *corev1.Pod) { p.Status.NominatedNodeName = "gone" }), epoch},
		"by a clock ahead of ours": {onNode("p", unschedulable(epoch.Add(time.Second))), epoch},
		"since an unknown time": {onNode("p", unschedulable(time.Time{}),
			func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(epoch.Add(-time.Hour)) }), epoch.Add(-time.Hour)},
		"of another scheduler": {onNode("p", unschedulable(epoch),
			func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }), epoch},
	} {
		t.Run(name, func(t *testing.T) {
			pending := see(readyNode("n"), []*corev1.Pod{test.pod}).Pending
			if test.since.IsZero() {
				assert.Empty(t, pending)
				return
			}
			require.Len(t, pending, 1)
			assert.Equal(t, "p", pending[0].Pod.Name)
			assert.True(t, test.since.Equal(pending[0].Since), "%s", pending[0].Since)
		})
	}
}

func TestPendingByAge(t *testing.T) {
	pending := see(nodeNamed("n"), []*corev1.Pod{
		onNode("young", unschedulable(epoch)), onNode("b", unschedulable(epoch.Add(-time.Minute))),
		onNode("a", unschedulable(epoch.Add(-time.Minute))),
	}).Pending
	var names []string
	for _, p := range pending {
		names = append(names, p.Pod.Name)
	}
	assert.Equal(t, []string{"a", "b", "young"}, names)
}

func TestRequested(t *testing.T) {
	phase := func(phase corev1.PodPhase) change { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	init := func(restart *corev1.ContainerRestartPolicy, cpu string) change {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers,
				corev1.Container{RestartPolicy: restart, Resources: corev1.ResourceRequirements{Requests: quantities(cpu, "0")}})
		}
	}
	node := see(nodeNamed("n"), []*corev1.Pod{
		onNode("plain"),
		onNode("init", init(nil, "2")),
		onNode("sidecar", init(new(corev1.ContainerRestartPolicyAlways), "250m")),
		onNode("overhead", func(p *corev1.Pod) { p.Spec.Overhead = quantities("10m", "1Mi") }),
		onNode("whole", func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: quantities("3", "3Gi")}
		}),
		onNode("gpu", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("2")
		}),
		onNode("agent", ownedBy("DaemonSet")),
		onNode("static", annotated(corev1.MirrorPodAnnotationKey, "x")),
		onNode("leaving", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }),
		onNode("succeeded", phase(corev1.PodSucceeded)),
		onNode("failed", phase(corev1.PodFailed)),
		onNode("elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "m" }),
	}).Nodes[0]
	told := func(l corev1.ResourceList) map[string]string {
		out := map[string]string{}
		for name, q := range l {
			out[string(name)] = q.String()
		}
		return out
	}
	assert.Equal(t, map[string]string{"cpu": "8760m", "memory": "11265Mi", "nvidia.com/gpu": "2", "pods": "9"},
		told(node.Requested))
	assert.Equal(t, map[string]string{"cpu": "500m", "memory": "1Gi", "pods": "1"}, told(node.DaemonSets))
	assert.Equal(t, 7, node.Movable)
	assert.Len(t, node.Pods, 9)
}

func TestReadiness(t *testing.T) {
	node := nodeNamed("n")
	assert.False(t, see(node, nil).Nodes[0].Ready, "a Node that says nothing")
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(epoch)}}
	got := see(node, nil).Nodes[0]
	assert.True(t, got.Ready)
	assert.Equal(t, epoch, got.ReadySince)
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	assert.False(t, see(node, nil).Nodes[0].Ready, "a Node without a status")
}

// The trimmed objects must be sufficient for scheduling.
func TestTrimmedKeepsRules(t *testing.T) {
	pod := onNode("p", unschedulable(epoch))
	pod.Annotations = map[string]string{"x": "y"}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1},
		{ContainerPort: 2, HostPort: 3, Protocol: corev1.ProtocolUDP}}
	pod.Spec.NodeSelector = map[string]string{"a": "b"}
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "k"}}
	required := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	pod.Spec.Affinity = &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required,
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{}}},
		PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{}}},
	}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.ScheduleAnyway},
		{WhenUnsatisfiable: corev1.DoNotSchedule, MaxSkew: 2}}
	got := trimmedPod(pod)
	assert.Equal(t, pod.Labels, got.Labels)
	assert.Equal(t, pod.OwnerReferences, got.OwnerReferences)
	assert.Empty(t, got.Annotations)
	assert.Equal(t, []corev1.Container{{Name: "main", Resources: pod.Spec.Containers[0].Resources,
		Ports: []corev1.ContainerPort{{HostPort: 3, Protocol: corev1.ProtocolUDP}}}}, got.Spec.Containers)
	assert.Equal(t, pod.Spec.NodeSelector, got.Spec.NodeSelector)
	assert.Equal(t, pod.Spec.Tolerations, got.Spec.Tolerations)
	assert.Equal(t, &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: required}}, got.Spec.Affinity)
	assert.Equal(t, pod.Spec.TopologySpreadConstraints[1:], got.Spec.TopologySpreadConstraints)

	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "x"},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: pod.Spec}}}
	assert.Equal(t, got.Spec.Containers, trimmedDaemonSet(set).Spec.Template.Spec.Containers)
}

package nodepool

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	storagevolume "k8s.io/component-helpers/storage/volume"

	"github.com/foresail/foresail/nodepool/drain"
)

// workload is a Deployment or a StatefulSet.
type workload struct {
	app      string
	replicas int
	template corev1.PodSpec
	budget   int  // pods that may be away, by a PodDisruptionBudget; 0 = it has none
	stateful bool // its pods keep their names and a volume each
}

// workloads are the pods of a fakeWorld with what controllers and kube-scheduler do about them, written without
// regard to how Foresail models it.
type workloads struct {
	world     *fakeWorld
	all       []*workload
	pods      []*corev1.Pod
	limit     int    // volumes that can be attached to a node; 0 = as many as there are
	daemon    string // CPU that a pod of a DaemonSet requests on each node, whose template says 100m; "" = there is none
	evictions int
	created   int
}

// play has a world run workloads.
func (w *fakeWorld) play(all ...*workload) *workloads {
	w.workloads = &workloads{world: w, all: all}
	dress := w.dress
	w.dress = func(n *fakeNode) {
		if dress != nil {
			dress(n)
		}
		n.object.Labels[corev1.LabelHostname] = n.object.Name
	}
	for name, n := range w.nodes {
		n.object.Labels[corev1.LabelHostname] = name
	}
	return w.workloads
}

// settle does what controllers and the scheduler have done by now.
func (s *workloads) settle() {
	now := s.world.clock.now()
	s.pods = slices.DeleteFunc(s.pods, func(p *corev1.Pod) bool {
		n := s.world.nodes[p.Spec.NodeName]
		ended := p.DeletionTimestamp != nil && !now.Before(p.DeletionTimestamp.Time)
		return ended || p.Spec.NodeName != "" && n == nil
	})
	for name := range s.world.nodes {
		s.runDaemon(name)
	}
	for _, w := range s.all {
		s.reconcile(w)
	}
	for _, p := range s.pods {
		if p.Spec.NodeName == "" {
			s.schedule(p)
		}
	}
}

// runDaemon creates the DaemonSet's pod on a node.
func (s *workloads) runDaemon(node string) {
	name := "daemon-" + node
	if s.daemon == "" || slices.ContainsFunc(s.pods, func(p *corev1.Pod) bool { return p.Name == name }) {
		return
	}
	s.create(&workload{template: plain(s.daemon)}, name)
	p := s.pods[len(s.pods)-1]
	p.OwnerReferences[0].Kind, p.OwnerReferences[0].UID, p.Labels = "DaemonSet", "daemon", nil
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
}

// reconcile creates the pods that a workload lacks. A StatefulSet waits until one of the name has gone.
func (s *workloads) reconcile(w *workload) {
	for i := range w.replicas {
		if w.stateful {
			name := fmt.Sprintf("%s-%d", w.app, i)
			if !slices.ContainsFunc(s.pods, func(p *corev1.Pod) bool { return p.Name == name }) {
				s.create(w, name)
			}
		} else if s.running(w) < w.replicas {
			s.created++
			s.create(w, fmt.Sprintf("%s-%04d", w.app, s.created))
		}
	}
}

// running counts the pods of a workload that are not ending.
func (s *workloads) running(w *workload) (n int) {
	for _, p := range s.pods {
		if p.Labels["app"] == w.app && p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func (s *workloads) create(w *workload, name string) {
	kind := "ReplicaSet"
	p := &corev1.Pod{Spec: *w.template.DeepCopy()}
	if w.stateful {
		kind = "StatefulSet"
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name}}}}
	}
	p.ObjectMeta = metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": w.app},
		CreationTimestamp: metav1.NewTime(s.world.clock.now()),
		OwnerReferences:   []metav1.OwnerReference{{Kind: kind, Name: w.app, UID: types.UID(w.app), Controller: new(true)}},
	}
	p.Status.Phase = corev1.PodPending
	s.pods = append(s.pods, p)
}

// schedule binds a pod to the first node that takes it.
func (s *workloads) schedule(p *corev1.Pod) {
	for _, name := range sortedNames(s.world.nodes) {
		if n := s.world.nodes[name]; s.fits(p, n) {
			p.Spec.NodeName, p.Status.Phase, p.Status.Conditions = name, corev1.PodRunning,
				[]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			return
		}
	}
	if len(p.Status.Conditions) == 0 {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			LastTransitionTime: metav1.NewTime(s.world.clock.now()),
		}}
	}
}

func sortedNames(nodes map[string]*fakeNode) []string {
	var out []string
	for name := range nodes {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// fits plays the filters of the scheduler.
func (s *workloads) fits(p *corev1.Pod, n *fakeNode) bool {
	if !n.ready || n.mark != "" || n.cordon || n.object.Spec.Unschedulable || len(n.object.Spec.Taints) > 0 {
		// nothing tolerates any
		return false
	}
	for key, value := range p.Spec.NodeSelector {
		if n.object.Labels[key] != value {
			return false
		}
	}
	free, volumes := n.object.Status.Allocatable.Cpu().MilliValue(), len(p.Spec.Volumes)
	for _, other := range s.on(n.object.Name) {
		free -= other.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		volumes += len(other.Spec.Volumes)
	}
	if free < p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() || s.limit > 0 &&
		volumes > s.limit && len(p.Spec.Volumes) > 0 {
		return false
	}
	if p.Spec.Affinity != nil &&
		slices.ContainsFunc(s.on(n.object.Name), func(q *corev1.Pod) bool { return q.Labels["app"] == p.Labels["app"] }) {
		return false // the only affinity that there is keeps replicas apart
	}
	return !slices.ContainsFunc(p.Spec.TopologySpreadConstraints,
		func(c corev1.TopologySpreadConstraint) bool { return !s.even(p, n, c) })
}

// even reports whether a spread constraint lets a pod be on a node.
func (s *workloads) even(p *corev1.Pod, n *fakeNode, c corev1.TopologySpreadConstraint) bool {
	count := map[string]int{}
	for _, other := range s.world.nodes {
		tainted := other.mark != "" || other.cordon || other.object.Spec.Unschedulable
		if tainted && c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor {
			continue
		}
		domain := other.object.Labels[c.TopologyKey]
		count[domain] += 0
		for _, q := range s.on(other.object.Name) {
			if q.DeletionTimestamp == nil && q.Labels["app"] == p.Labels["app"] {
				count[domain]++
			}
		}
	}
	least := count[n.object.Labels[c.TopologyKey]]
	for _, of := range count {
		least = min(least, of)
	}
	return count[n.object.Labels[c.TopologyKey]]+1-least <= int(c.MaxSkew)
}

func (s *workloads) on(node string) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(s.pods), func(p *corev1.Pod) bool { return p.Spec.NodeName != node })
}

// movable counts the pods of a node that are not of a DaemonSet.
func (s *workloads) movable(node string) (n int) {
	for _, p := range s.on(node) {
		if p.OwnerReferences[0].Kind != "DaemonSet" {
			n++
		}
	}
	return n
}

// allowed is how many more pods the budget of a pod lets be away.
func (s *workloads) allowed(w *workload) int {
	healthy := 0
	for _, p := range s.pods {
		if p.Labels["app"] == w.app && p.DeletionTimestamp == nil && p.Spec.NodeName != "" {
			healthy++
		}
	}
	return max(0, healthy-(w.replicas-w.budget))
}

// evict has the pods of a node leave, as far as budgets allow.
func (s *workloads) evict(node string, l drain.Limits) (progress drain.Progress) {
	for _, p := range s.on(node) {
		if p.OwnerReferences[0].Kind == "DaemonSet" {
			continue
		}
		progress.Remaining++
		at := slices.IndexFunc(s.all, func(w *workload) bool { return w.app == p.Labels["app"] })
		switch {
		case p.DeletionTimestamp != nil:
		case at >= 0 && s.all[at].budget > 0 && s.allowed(s.all[at]) == 0 && !l.Force:
			progress.Refused = append(progress.Refused, p.Name+": its budget allows none")
		default:
			s.evictions++
			p.DeletionTimestamp = new(metav1.NewTime(s.world.clock.now().Add(s.world.podGrace)))
			p.Finalizers = []string{"test"} // the fake API accepts no object without one that is being deleted
		}
	}
	return progress
}

// objects are what the API server has of them.
func (s *workloads) objects() []runtime.Object {
	var out []runtime.Object
	for _, p := range s.pods {
		out = append(out, p)
	}
	if s.daemon != "" {
		out = append(out, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "daemon", UID: "daemon"},
			Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: plain("100m")}}})
	}
	for name := range s.world.nodes {
		if s.limit > 0 {
			out = append(out, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{
				Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: name,
					Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(s.limit))}}}}})
		}
	}
	for _, w := range s.all {
		for i := 0; w.stateful && i < w.replicas; i++ {
			out = append(out, volumeOf(fmt.Sprintf("data-%s-%d", w.app, i))...)
		}
		if w.budget > 0 {
			out = append(out, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: w.app},
				Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt(w.budget)),
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.app}}},
				Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(s.allowed(w))},
			})
		}
	}
	return out
}

const driver = "ebs.csi.aws.com"

// volumeOf returns a claim and its volume, which every node can attach.
func volumeOf(claim string) []runtime.Object {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: claim,
		Annotations: map[string]string{storagevolume.AnnBindCompleted: "yes"}}}
	c.Spec.VolumeName = "pv-" + claim
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: c.Spec.VolumeName}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: claim}
	return []runtime.Object{c, v}
}

// waiting counts the pods without a node.
func (s *workloads) waiting() (n int) {
	for _, p := range s.pods {
		if p.Spec.NodeName == "" {
			n++
		}
	}
	return n
}

// spread returns a pod that requests CPU, and keeps even with others of its application over the hosts.
func spread(app, cpu string) corev1.PodSpec {
	return corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		}},
	}
}

// settled lets workloads find their nodes.
func (r *rig) settled(s *workloads) {
	r.Helper()
	r.world.mu.Lock()
	s.settle()
	r.world.mu.Unlock()
	r.clock.advance(time.Second)
}

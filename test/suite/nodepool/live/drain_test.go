package live

import (
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/plan"
)

// TestABudgetThatNeverAllows has two nodes that no drain can empty. One is known for that
// beforehand. Of the other a first pod may leave, and as nothing can take its place, no second one:
// that is found out by a drain.
func TestABudgetThatNeverAllows(t *testing.T) {
	t.Parallel()
	running(t)
	p := newPool(t, "budgets")
	p.create(4, 4, func(s *v1alpha1.WorkerPoolSpec) { s.Drain.Timeout = &metav1.Duration{Duration: 8 * time.Second} })
	all := p.settled(4)
	p.seat(all[0], "late")
	p.seat(all[1], "never")
	p.deploy(p.name, 2, p.template("late", "late"))
	p.budget("late", 1, 1)
	p.deploy(p.name, 1, p.template("never", "never"))
	p.budget("never", 1, 0)
	p.deploy(metav1.NamespaceDefault, 4, heavy(p.template("budgets-free", ""))) // so that the others are not the idlest
	// a home, or the first node would not be drained at all
	p.seat(all[1], "late")
	lift := p.allowNoNewPods()

	p.change(func(s *v1alpha1.WorkerPoolSpec) { s.Min, s.Max = 1, 1 })
	message := p.event(journal.EventDrainFailed)
	lift()
	assert.Contains(t, message, "disruption budget")
	assert.Contains(t, message, "after 8s")
	left := p.settled(2)
	require.Equal(t, []fleet.Instance{all[0], all[1]}, left, "the others were tried, and removed")
	p.untouched(p.nodes())
	p.runs(p.name, "late", 2)
	p.runs(p.name, "never", 1)
	p.runs(metav1.NamespaceDefault, "budgets-free", 4)

	r := p.record()
	require.Contains(t, r.DrainBackoff, all[0].ID)
	assert.Greater(t, time.Until(r.DrainBackoff[all[0].ID]), 5*time.Minute)
	assert.NotContains(t, r.DrainBackoff, all[1].ID, "it has not been tried")
	assert.Contains(t, p.decides(plan.NoRemovableNode), "no worker can be removed")
	assert.Len(t, p.told(journal.EventDrainFailed), 1)
}

// allowNoNewPods has a quota refuse the pods that would take the place of others, until lift is called.
func (p *pool) allowNoNewPods() (lift func()) {
	p.Helper()
	quotas := cluster.Client().CoreV1().ResourceQuotas(p.name)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}}
	_, err := quotas.Create(p.Context(), quota, metav1.CreateOptions{})
	require.NoError(p, err)
	p.until("the quota", func() bool {
		q, err := quotas.Get(p.Context(), quota.Name, metav1.GetOptions{})
		require.NoError(p, err)
		return !q.Status.Used.Pods().IsZero()
	})
	return func() { require.NoError(p, quotas.Delete(p.Context(), quota.Name, metav1.DeleteOptions{})) }
}

// heavy has a pod ask for more than others.
func heavy(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("700m")
	return t
}

// TestOnlyThePlainNodeIsRemoved has a node for each thing that keeps one, and a plain one.
func TestOnlyThePlainNodeIsRemoved(t *testing.T) {
	t.Parallel()
	running(t)
	p := newPool(t, "kept")
	p.create(7, 20, func(s *v1alpha1.WorkerPoolSpec) { s.Provider.Simulated.Zones = []string{"a"} })
	instances := p.settled(7)
	seats := []string{"system", "critical", "bare", "safe-to-evict", "do-not-disrupt", "karpenter", "plain"}
	for n, seat := range seats {
		p.seat(instances[n], seat)
	}
	plain := instances[len(instances)-1]

	p.deploy(metav1.NamespaceSystem, 1, p.template("system-of-"+p.name, "system"))
	critical := p.template("critical", "critical")
	critical.Spec.PriorityClassName = "system-cluster-critical"
	p.deploy(p.name, 1, critical)
	for seat, annotation := range map[string][2]string{
		"safe-to-evict":  {"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"},
		"do-not-disrupt": {"foresail.dev/do-not-disrupt", "true"},
		"karpenter":      {"karpenter.sh/do-not-disrupt", "true"},
	} {
		kept := p.template(seat, seat)
		kept.Annotations = map[string]string{annotation[0]: annotation[1]}
		p.deploy(p.name, 1, kept)
	}
	p.bare("bare", p.template("bare", "bare"))
	p.deploy(p.name, 3, p.template("plain", "")) // wherever the scheduler puts them
	p.daemons("daemons", p.template("daemons", "plain"))
	mirror := p.template("mirror", "plain")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "mirrored"}
	mirror.Spec.NodeName = p.nodes()[plain.ProviderID].Name
	p.bare("mirror", mirror)

	p.change(func(s *v1alpha1.WorkerPoolSpec) { s.Min, s.Max = 1, 1 })
	p.event(journal.EventTerminated)
	left := p.settled(6)
	assert.NotContains(t, ids(left), plain.ID)
	assert.Contains(t, p.decides(plan.NoRemovableNode), "no worker can be removed")
	assert.Len(t, p.told(journal.EventTerminated), 1)
	assert.Empty(t, p.told(journal.EventDrainFailed), "the others were not even tried")
	p.untouched(p.nodes())
	p.runs(metav1.NamespaceSystem, "system-of-"+p.name, 1)
	for _, seat := range []string{"critical", "bare", "safe-to-evict", "do-not-disrupt", "karpenter"} {
		p.runs(p.name, seat, 1)
	}
	p.runs(p.name, "plain", 3)
	// The garbage collection of pods leaves those of a Node that has gone alone for longer than this takes.
	still := p.pods(p.name, "mirror")
	require.Len(t, still, 1)
	assert.Nil(t, still[0].DeletionTimestamp, "nobody has asked it to leave")
}

// TestADeletedPoolTakesItsNodesAlong deletes a pool under two pods. As nothing can take the place
// of the first, their budget does not let the second go: it is deleted, as drain.force says. The
// object stays for minutes after that, unless nodes may be left.
func TestADeletedPoolTakesItsNodesAlong(t *testing.T) {
	t.Parallel()
	running(t)
	p := newPool(t, "deleted")
	p.create(1, 1, func(s *v1alpha1.WorkerPoolSpec) {
		s.DeletionPolicy = v1alpha1.DeletionPolicyDrain
		s.Drain = v1alpha1.DrainPolicy{Timeout: after(2 * time.Second), Force: true}
	})
	p.settled(1)
	p.deploy(p.name, 2, p.template("held", ""))
	p.budget("held", 1, 1)
	p.allowNoNewPods()
	require.Equal(t, []string{v1alpha1.FinalizerDrain}, p.get().Finalizers)

	require.NoError(t, objects.Delete(t.Context(), p.get()))
	p.until("nothing is left", func() bool { return len(p.nodes()) == 0 && len(p.instances()) == 0 })
	p.change(func(s *v1alpha1.WorkerPoolSpec) { s.DeletionPolicy = v1alpha1.DeletionPolicyOrphan })
	p.until("the object is gone", func() bool {
		err := objects.Get(t.Context(), client.ObjectKey{Name: p.name}, new(v1alpha1.WorkerPool))
		return apierrors.IsNotFound(err)
	})
}

func ids(list []fleet.Instance) []string {
	var out []string
	for _, i := range list {
		out = append(out, i.ID)
	}
	return out
}

// bare makes a pod without a controller.
func (p *pool) bare(name string, template corev1.PodTemplateSpec) {
	p.Helper()
	template.Name = name
	if template.Annotations[corev1.MirrorPodAnnotationKey] != "" {
		template.Spec.AutomountServiceAccountToken = new(bool)
	}
	p.until("the pod "+name, func() bool {
		_, err := cluster.Client().CoreV1().Pods(p.name).Create(p.Context(),
			&corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false // its service account is on its way
		}
		require.NoError(p, err)
		return true
	})
	p.runs(p.name, template.Labels["app"], 1)
}

// daemons runs a DaemonSet.
func (p *pool) daemons(name string, template corev1.PodTemplateSpec) {
	p.Helper()
	_, err := cluster.Client().AppsV1().DaemonSets(p.name).Create(p.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: template},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
	p.runs(p.name, template.Labels["app"], 1)
}

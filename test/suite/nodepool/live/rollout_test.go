package live

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/drain"
)

// TestAllNodesAreRolledOut changes what new nodes are, under 20 that their pods fill: a Deployment
// with a budget of four, another with a pod on each node and a budget of one, and a StatefulSet
// with volumes and a budget of one. All nodes are replaced, up to four at a time, and no more pods
// are away than the budgets say.
func TestAllNodesAreRolledOut(t *testing.T) {
	t.Parallel()
	running(t)
	const workers, atOnce = 20, 4
	p := newPool(t, "rollout")
	p.create(workers, 2*workers, func(s *v1alpha1.WorkerPoolSpec) {
		s.Disruption.Budgets = []v1alpha1.DisruptionBudget{{Nodes: intstr.FromString("20%")}}
		// The default. PodDisruptionBudgets name evicted pods by their names: if their controller
		// is late, a pod of a StatefulSet that came back under its name counts as being evicted for
		// two minutes, and no other may be.
		s.Drain.Timeout = &metav1.Duration{Duration: 5 * time.Minute}
	})
	before := p.settled(workers)
	apps := []rolledApp{{"shop", 2 * workers, 4}, {"everywhere", workers, 1}, {"store", 3, 1}}
	shop := p.template("shop", "")
	shop.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1900m")
	p.deploy(p.name, apps[0].pods, shop)
	p.deploy(p.name, apps[1].pods, onePerNode(p.template("everywhere", "")))
	p.store(apps[2].pods)
	for _, a := range apps {
		p.budget(a.name, a.pods-a.mayBeAway, a.mayBeAway)
	}

	began := time.Now()
	p.change(func(s *v1alpha1.WorkerPoolSpec) { s.Provider.Simulated.Shape["memory"] = resource.MustParse("9Gi") })
	away := map[string]int{}
	fewestNodes, mostMarked := workers, 0
	p.within(5*patience, "all nodes are others", func() bool {
		for _, a := range apps {
			away[a.name] = max(away[a.name], a.pods-p.readyPods(a.name))
		}
		nodes, marked := p.nodes(), 0
		for _, n := range nodes {
			if _, is := drain.MarkOf(&n); is {
				marked++
			}
		}
		fewestNodes, mostMarked = min(fewestNodes, len(nodes)), max(mostMarked, marked)
		status := p.get().Status.Rollout
		return status != nil && status.Outdated == 0 && !slices.ContainsFunc(before, func(i fleet.Instance) bool {
			_, there := nodes[i.ProviderID]
			return there
		})
	})
	p.settled(workers)
	for _, a := range apps {
		p.runs(p.name, a.name, a.pods)
		assert.LessOrEqual(t, away[a.name], a.mayBeAway, a.name)
	}
	t.Logf("%d nodes in %s; at most away: %v; at least %d nodes there", workers, time.Since(began).Round(time.Second),
		away, fewestNodes)
	assert.GreaterOrEqual(t, fewestNodes, workers)
	assert.LessOrEqual(t, mostMarked, atOnce)
	for _, i := range before {
		require.NotZero(t, p.fates()[i.ID].EndsAt)
	}
	require.Contains(t, p.event(journal.EventDrained), "is empty")
	p.untouched(p.nodes())
}

// rolledApp is an application whose nodes are replaced.
type rolledApp struct {
	name            string
	pods, mayBeAway int
}

// onePerNode spreads pods over the nodes.
func onePerNode(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: t.Labels},
	}}
	return t
}

func (p *pool) readyPods(app string) (n int) {
	for _, pod := range p.pods(p.name, app) {
		if isReady(pod) {
			n++
		}
	}
	return n
}

// store has a StatefulSet run whose pods have a volume each, in the zone of the pool.
func (p *pool) store(replicas int) {
	p.Helper()
	template, class := p.template("store", ""), p.name+"-volumes"
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	for i := range replicas {
		_, err := cluster.Client().CoreV1().PersistentVolumes().Create(p.Context(), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", class, i)},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				StorageClassName:       class,
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/store"}},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
					}}},
				}},
			},
		}, metav1.CreateOptions{})
		require.NoError(p, err)
	}
	_, err := cluster.Client().AppsV1().StatefulSets(p.name).Create(p.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "store"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: template,
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
					Resources: corev1.VolumeResourceRequirements{Requests: size},
				},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
	p.runs(p.name, "store", replicas)
}

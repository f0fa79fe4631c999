package extender

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/drain"
)

// deploy has so many replicas of a pod, which are brought back if they are evicted.
func (s *stage) deploy(replicas int, p spec) {
	s.Helper()
	pod := s.pod("", p)
	_, err := cluster.Client().AppsV1().Deployments(s.name).Create(s.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: p.app},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec,
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(s, err)
}

// bindGrace is how long a pool waits after the taint for pods that are on their way.
const bindGrace = 3 * time.Second

// TestRemovedNodesReceiveNoPods has a pool remove four of ten nodes while many pods are bound.
func TestRemovedNodesReceiveNoPods(t *testing.T) { testRemoval(t) }

func testRemoval(t *testing.T) {
	t.Parallel()
	s := newStage(t, "removal")
	f := startForesail(t, "test:extender-metrics-interval=1s", "test:extender-warm-up=0s")
	uses.every(t, time.Second)
	s.createPool(10, 10, size{"16", "32Gi", "250"}, nil)
	s.workers(10)
	scheduler := startScheduler(t, s.name, asking(t, f.address))
	w := s.watch("")

	const deployments, replicas = 20, crowd / 20
	s.changePool(func(p *v1alpha1.WorkerPoolSpec) { p.Min, p.Max = 6, 6 })
	for i := range deployments {
		s.deploy(replicas, spec{
			app: fmt.Sprintf("app-%d",
				i), scheduler: scheduler.Name, cpu: "50m", memory: "64Mi", maxCPU: "80m", maxMem: "100Mi", uses: use{0.06, 64 << 20},
		})
		// the next come when these have a node, so that the removal is in their midst
		s.placed(fmt.Sprintf("app-%d", i), replicas)
	}
	nodes := s.workers(6)
	there := map[string]bool{}
	for _, node := range nodes {
		there[node.Name] = true
	}
	for i := range deployments {
		for _, pod := range s.ready(fmt.Sprintf("app-%d", i), replicas) {
			assert.True(t, there[pod.Spec.NodeName], "pod %s is on %s, which is gone", pod.Name, pod.Spec.NodeName)
		}
	}
	w.catchUp(s)
	marked := w.marked()
	assert.Len(t, marked, 4, "nodes that were removed")
	late, latest, evicted := w.lateTo(marked)
	for _, fate := range w.podFates() {
		node, removed := marked[fate.node]
		if !removed {
			continue
		}
		if fate.bound.version > node.tainted.version {
			assert.Less(t, fate.bound.version, node.cordoned.version,
				"pod %s was bound to %s after the wait for such pods", fate.name, fate.node)
		}
		assert.NotZero(t, fate.gone.version, "pod %s has gone down with %s", fate.name, fate.node)
	}
	families := f.MustMetrics(t)
	t.Logf("%d pods bound, %d of them evicted with 4 nodes; %d were bound to a node after its taint, at most %s after it; the extender refused %.0f times, %d answers missed",
		w.bound(), evicted, late, latest.Round(time.Millisecond), families.Sum("foresail_extender_nodes_filtered_total",
			"reason", "removing"), skipped(t, scheduler))
}

// lateTo counts the pods that were bound to nodes after they were tainted, and by how much, and
// those that had to leave.
func (w *witness) lateTo(marked map[string]nodeFate) (late int, latest time.Duration, evicted int) {
	for _, fate := range w.podFates() {
		node, ok := marked[fate.node]
		if !ok {
			continue
		}
		if fate.gone.version > 0 {
			evicted++
		}
		if fate.bound.version > node.tainted.version {
			late++
			latest = max(latest, fate.bound.at.Sub(node.tainted.at))
		}
	}
	return late, latest, evicted
}

// TestRemovalWithoutPool takes the steps of a removal itself, to have a node stay as it is in the
// middle of one.
func TestRemovalWithoutPool(t *testing.T) {
	t.Parallel()
	s := newStage(t, "marked")
	nodes := s.addNodes(4, size{"16", "32Gi", "1000"})
	f := startForesail(t, "test:extender-metrics-interval=1s", "test:extender-warm-up=0s")
	asks := startScheduler(t, s.name, asking(t, f.address, patient))
	control := startScheduler(t, s.name+"-control", plain(t))
	drainer := &drain.Drainer{Client: cluster.Client(), Now: time.Now}
	removed := nodes[0]
	require.NoError(t, drainer.Taint(t.Context(), removed, "down-1"))
	s.untilListed(f.probe, nodes)
	s.untilKnown(f.probe, "the taint to be known", nodes[:1], func(n *extender.FilterNode) bool { return n.Pool != "" })
	verdicts, err := f.probe.askAs(t.Context(), nodes, "of-no-pod")
	require.NoError(t, err)
	assert.Len(t, verdicts, len(nodes), "a pod that is looked for in vain is judged as any other")
	tolerant := func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	like := spec{cpu: "10m", memory: "16Mi", uses: use{0.01, 16 << 20}}

	t.Run("pods that tolerate every taint", func(t *testing.T) {
		const pods = 60
		p := like
		p.app, p.scheduler, p.change = "tolerant", asks.Name, tolerant
		s.create(pods, p, nil)
		placed := on(s.placed(p.app, pods))
		p.app, p.scheduler = "tolerant-control", control.Name
		s.create(pods, p, nil)
		controlled := on(s.placed(p.app, pods))
		t.Logf("%d of %d with the extender, %d of %d without", placed[removed], pods, controlled[removed], pods)
		assert.Zero(t, placed[removed])

		w := s.watch("only-there")
		p.app, p.scheduler = "only-there", asks.Name
		p.change = func(pod *corev1.Pod) {
			tolerant(pod)
			pod.Spec.NodeSelector[corev1.LabelHostname] = removed
		}
		s.create(1, p, nil)
		s.until("it to be refused", func() bool {
			for _, fate := range w.podFates() {
				if fate.refusal != "" {
					t.Log(fate.refusal)
					return true
				}
			}
			return false
		})
		assert.Zero(t, w.bound())
		p.app, p.scheduler = "only-there-control", control.Name
		s.create(1, p, nil)
		assert.Equal(t, 1, on(s.placed(p.app, 1))[removed], "the taint alone does not keep it")
	})

	t.Run("while the extender is down", func(t *testing.T) {
		require.NoError(t, f.Kill())
		w := s.watch("down")
		const pods, other = crowd, 1
		created := make(chan error, 1)
		go func() {
			p := like
			p.app, p.scheduler = "down", asks.Name
			created <- s.tryCreate(pods, p, nil)
		}()
		s.until("some of them to be bound", func() bool { return w.bound() > pods/4 })
		require.NoError(t, drainer.Taint(t.Context(), nodes[other], "down-2"))
		time.Sleep(bindGrace)
		require.NoError(t, drainer.Cordon(t.Context(), nodes[other]))
		require.NoError(t, <-created)
		s.until("all to be bound", func() bool { return w.bound() == pods })
		w.catchUp(s)
		marked := w.marked()
		require.Contains(t, marked, nodes[other])
		late, latest, _ := w.lateTo(marked)
		for _, fate := range w.podFates() {
			assert.NotEqual(t, removed, fate.node, "the taint alone keeps pods away")
			if fate.node == nodes[other] {
				assert.Less(t, fate.bound.version, marked[fate.node].cordoned.version, "pod %s", fate.name)
			}
		}
		_, _, rate := w.rate()
		t.Logf("%d pods at %.0f a second without an extender: %d were bound to the node after its taint, at most %s after it", pods, rate, late, latest.Round(time.Millisecond))
		f.start()
	})
}

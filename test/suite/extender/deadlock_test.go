package extender

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/simulated"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
)

// stuffed has a pool of one node, which requests say is empty and whose memory is full, and pods
// come that need little.
type stuffed struct {
	*stage
	old       string // the node
	scheduler *controlplane.FurtherScheduler
}

const stuffedPods = 3

func newStuffed(t *testing.T, name string, most int32, change func(*v1alpha1.WorkerPoolSpec),
	flags ...string) *stuffed {
	t.Helper()
	s := &stuffed{stage: newStage(t, name)}
	f := startForesail(t, append(flags, "test:extender-metrics-interval=1s", "test:extender-warm-up=0s")...)
	s.createPool(1, most, worker, change)
	s.old = s.workers(1)[0].Name
	uses.lay(t, s.old, constantly(use{1, 0.97 * worker.use().memory}))
	uses.every(t, time.Second)
	// A node without pods is refused to nobody.
	s.resident(s.old, spec{app: "resident", cpu: "50m", memory: "64Mi"})
	s.scheduler = startScheduler(t, name, asking(t, f.address, patient))
	s.untilPredicted(f.probe, []string{s.old})
	return s
}

// come has the pods come, and returns what is seen of them.
func (s *stuffed) come() *witness {
	s.Helper()
	w := s.watch("late")
	s.create(stuffedPods, spec{app: "late", scheduler: s.scheduler.Name, cpu: "100m", memory: "64Mi",
		uses: use{0.05, 32 << 20}}, nil)
	return w
}

// refused waits until they have been told that predicted use is why.
func (s *stuffed) refused(w *witness) {
	s.Helper()
	s.until("the pods to be refused", func() bool {
		fates := w.podFates()
		return len(fates) == stuffedPods && !slices.ContainsFunc(fates, func(f podFate) bool { return f.refusal == "" })
	})
	for _, fate := range w.podFates() {
		assert.Contains(s, fate.refusal, v1alpha1.FilteredForLoad)
	}
}

// TestNoDeadlock has the extender refuse the only node to pods that the pool would have found room for on it.
func TestNoDeadlock(t *testing.T) {
	t.Parallel()
	t.Run("the pool grows for them", func(t *testing.T) {
		t.Parallel()
		s := newStuffed(t, "grows", 3, nil)
		w := s.come()
		s.refused(w)
		begun := time.Now()
		placed := on(s.ready("late", stuffedPods))
		assert.Zero(t, placed[s.old], "on the node that is full")
		assert.Len(t, s.nodes(), 2, "one node is enough for them")
		t.Logf("%d pods ran %.1f s after they had been refused, after %.0f attempts", stuffedPods,
			time.Since(begun).Seconds(), s.attempts())
	})
	t.Run("the pool is at its maximum", func(t *testing.T) {
		t.Parallel()
		s := newStuffed(t, "full", 1, nil)
		begun := time.Now()
		s.come()
		placed := on(s.ready("late", stuffedPods))
		assert.Equal(t, map[string]int{s.old: stuffedPods}, placed)
		t.Logf("%d pods passed after %.1f s", stuffedPods, time.Since(begun).Seconds())
	})
	t.Run("the pool cannot help in time", func(t *testing.T) {
		t.Parallel()
		const cloud, waited = "helpless-cloud", 20 * time.Second
		ownCloud(t, cloud)
		s := newStuffed(t, "helpless", 3, func(p *v1alpha1.WorkerPoolSpec) { p.Provider.Simulated.Namespace = cloud },
			"test:extender-max-wait="+waited.String())
		_, err := cluster.Client().CoreV1().ConfigMaps(cloud).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: simulated.FaultsName},
			Data:       map[string]string{simulated.FaultNeverJoin: "true"},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		begun := time.Now()
		w := s.come()
		s.refused(w)
		time.Sleep(time.Until(begun.Add(waited / 2)))
		t.Logf("%d pods that are refused were tried %.0f times in %s", stuffedPods, s.attempts(), waited/2)
		assert.Zero(t, w.bound(), "pods that have not waited for long enough")
		// The scheduler tries them again when anything changes in the cluster; in one as quiet as
		// this nothing does.
		s.until("the pods to pass", func() bool {
			s.touch()
			time.Sleep(time.Second)
			return w.bound() == stuffedPods
		})
		assert.Equal(t, map[string]int{s.old: stuffedPods}, on(s.placed("late", stuffedPods)))
		t.Logf("%d pods passed after %.1f s", stuffedPods, time.Since(begun).Seconds())
	})
}

// touch changes something about the node that schedulers look at.
func (s *stuffed) touch() {
	s.Helper()
	node, err := cluster.Client().CoreV1().Nodes().Get(s.Context(), s.old, metav1.GetOptions{})
	require.NoError(s, err)
	node.Labels["test.foresail.dev/touched"] = time.Now().Format("150405.000")
	_, err = cluster.Client().CoreV1().Nodes().Update(s.Context(), node, metav1.UpdateOptions{})
	if err != nil {
		s.Log(err) // the next time
	}
}

// attempts is how often the scheduler has tried pods.
func (s *stuffed) attempts() float64 {
	s.Helper()
	families, err := s.scheduler.Metrics(s.Context())
	require.NoError(s, err)
	return foresail.Families(families).Sum("scheduler_schedule_attempts_total")
}

// ownCloud makes the namespace of a simulated cloud whose faults are nobody else's.
func ownCloud(t *testing.T, name string) {
	t.Helper()
	rights, err := foresail.ReadManifest("components/simulated-nodes/rbac.yaml")
	require.NoError(t, err)
	_, err = cluster.Client().CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = cluster.Apply(t.Context(), bytes.ReplaceAll(rights, []byte("namespace: foresail-simulated\n"),
		[]byte("namespace: "+name+"\n")))
	require.NoError(t, err)
}

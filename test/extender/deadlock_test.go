package extender

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/simulated"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stuffed has a pool of one node, which requests say is empty and whose memory is full, and pods come that need little.
type stuffed struct {
	*stage
	old       string // the node
	scheduler string
}

const stuffedPods = 3

func newStuffed(t *testing.T, name string, most int32, flags ...string) *stuffed {
	t.Helper()
	s := &stuffed{stage: newStage(t, name), scheduler: name}
	f := startForesail(t, "nodepool,extender", append(flags, "--extender-metrics-interval", "1s", "--extender-warm-up", "0s")...)
	s.createPool(1, most, worker, nil)
	s.old = s.workers(1)[0].Name
	uses.lay(t, s.old, constantly(use{1, 0.97 * worker.use().memory}))
	uses.every(t, time.Second)
	// A node without pods is refused to nobody.
	resident := s.pod("resident", spec{app: "resident", cpu: "50m", memory: "64Mi"})
	resident.Spec.NodeName = s.old
	s.put(resident)
	s.ready("resident", 1)
	startScheduler(t, name, asking(t, f.address, patient))
	s.until("the node to be predicted", func() bool {
		return value(f.metrics(), "foresail_extender_view_age_seconds") >= 0
	})
	time.Sleep(15 * time.Second) // read often enough to be predicted
	return s
}

// come has the pods come, and returns what is seen of them.
func (s *stuffed) come() *witness {
	s.Helper()
	w := s.watch("late")
	s.create(stuffedPods, spec{app: "late", scheduler: s.scheduler, cpu: "100m", memory: "64Mi", uses: use{0.05, 32 << 20}}, nil)
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
		assert.Contains(s, fate.refusal, v1alpha1.RefusedForLoad)
	}
}

// TestNoDeadlock has the extender refuse the only node to pods that the pool would have found room for on it.
func TestNoDeadlock(t *testing.T) {
	t.Run("the pool grows for them", func(t *testing.T) {
		s := newStuffed(t, "grows", 3)
		w := s.come()
		s.refused(w)
		begun := time.Now()
		placed := on(s.ready("late", stuffedPods))
		assert.Zero(t, placed[s.old], "on the node that is full")
		assert.Len(t, s.nodes(), 2, "one node is enough for them")
		t.Logf("%d pods ran %.1f s after they had been refused, on %v", stuffedPods, time.Since(begun).Seconds(), placed)
	})
	t.Run("the pool is at its maximum", func(t *testing.T) {
		s := newStuffed(t, "full", 1)
		begun := time.Now()
		s.come()
		placed := on(s.ready("late", stuffedPods))
		assert.Equal(t, map[string]int{s.old: stuffedPods}, placed)
		t.Logf("%d pods passed after %.1f s", stuffedPods, time.Since(begun).Seconds())
	})
	t.Run("the pool cannot help in time", func(t *testing.T) {
		s := newStuffed(t, "helpless", 3, "--extender-patience", "10s")
		_, err := cluster.Client().CoreV1().ConfigMaps(simulated.DefaultNamespace).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: simulated.FaultsName}, Data: map[string]string{simulated.FaultNeverJoin: "true"},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, cluster.Client().CoreV1().ConfigMaps(simulated.DefaultNamespace).Delete(context.WithoutCancel(t.Context()), simulated.FaultsName, metav1.DeleteOptions{}))
		})
		begun := time.Now()
		w := s.come()
		s.refused(w)
		// The scheduler tries them again when anything changes in the cluster; in one as quiet as this nothing does.
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

package extender

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// target is the share of a node that the extender packs up to, by default.
const target = 0.65

// TestBurstDoesNotHerd has many pods come between two readings of what nodes use. A quarter of the
// nodes is busy with what no pod requests, and pods request half of their limits and use most of
// those: requests tell the scheduler little, and the last reading tells it less with each pod.
func TestBurstDoesNotHerd(t *testing.T) { testBurst(t) }

func testBurst(t *testing.T) {
	outcomes := []struct {
		name string
		spread
	}{}
	for _, variant := range []struct {
		name      string
		scheduler func(t *testing.T) ([]byte, *probe) // nil: nothing is asked
	}{
		{"extender", func(t *testing.T) ([]byte, *probe) {
			// All nodes are new here, and would be held back alike.
			f := startForesail(t, "test:extender-metrics-interval=1s", "test:extender-warm-up=0s")
			return asking(t, f.address, patient), f.probe
		}},
		{"no-extender", func(t *testing.T) ([]byte, *probe) { return plain(t), nil }},
	} {
		t.Run(variant.name, func(t *testing.T) {
			s := newStage(t, "herd-"+variant.name)
			outcomes = append(outcomes, struct {
				name string
				spread
			}{variant.name, s.burst(variant.scheduler)})
		})
	}
	if t.Failed() {
		return
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scheduler\tpods\tpods/s\tmean load\tmax\tstddev\tnodes above 65%\tnodes above 100%\tanswers missed")
	for _, o := range outcomes {
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.2f\t%.2f\t%.3f\t%d\t%d\t%d\n", o.name, o.pods, o.rate, o.mean, o.most,
			o.deviation, o.above, o.over, o.skipped)
	}
	require.NoError(t, w.Flush())
	t.Logf("load of %d nodes after a burst, by what pods really use:\n%s", outcomes[0].nodes, table.String())
	for _, o := range outcomes {
		if o.name == "extender" {
			assert.Zero(t, o.over, "overloaded nodes with the extender")
		}
	}
	if len(outcomes) < 2 { // -run has selected one
		return
	}
	assert.Less(t, outcomes[0].deviation, outcomes[1].deviation, "with the extender and without")
	assert.Less(t, outcomes[0].most, outcomes[1].most, "with the extender and without")
}

// spread is how the load of nodes is after a burst, each the larger share of CPU and memory.
type spread struct {
	nodes, pods           int
	rate                  float64
	mean, most, deviation float64
	above, over           int // the target, what there is
	skipped               int // times that the extender gave no answer
}

func spreadOf(loads []float64) spread {
	o := spread{nodes: len(loads)}
	for _, load := range loads {
		o.mean += load / float64(len(loads))
		o.most = max(o.most, load)
		if load > target {
			o.above++
		}
		if load > 1 {
			o.over++
		}
	}
	for _, load := range loads {
		o.deviation += (load - o.mean) * (load - o.mean) / float64(len(loads))
	}
	o.deviation = math.Sqrt(o.deviation)
	return o
}

// burst lets the pods come once nodes have been read often enough to be predicted, and then no more.
func (s *stage) burst(start func(t *testing.T) ([]byte, *probe)) spread {
	s.Helper()
	const nodes, pods = crowd * 48 / 1000, crowd
	names := s.addNodes(nodes, worker)
	random := rand.New(rand.NewPCG(1, 2))
	for i, name := range names {
		share := 0.05 + 0.1*random.Float64()
		if i%4 == 0 {
			share = 0.55 + 0.15*random.Float64()
		}
		uses.lay(s.T, name, constantly(use{share * worker.use().cpu, share * worker.use().memory}))
	}
	stop := uses.every(s.T, time.Second)
	config, asked := start(s.T)
	scheduler := startScheduler(s.T, s.name, config)
	if asked != nil {
		s.untilPredicted(asked, names)
	}
	stop()

	w := s.watch("burst")
	s.create(pods, spec{
		app: "burst", scheduler: scheduler.Name, cpu: "50m", memory: "80Mi", maxCPU: "100m", maxMem: "160Mi",
	}, func(_ int, pod *corev1.Pod) {
		share := 0.6 + 0.4*random.Float64()
		pod.Annotations[usesCPU] = resource.NewMilliQuantity(int64(100*share), resource.DecimalSI).String()
		pod.Annotations[usesMemory] = resource.NewQuantity(int64(160*share*(1<<20)), resource.BinarySI).String()
	})
	s.until("all to be bound", func() bool { return w.bound() == pods })
	placed := s.placed("burst", pods)
	var loads []float64
	by := map[string]use{}
	for _, pod := range placed {
		by[pod.Spec.NodeName] = by[pod.Spec.NodeName].add(usedBy(&pod))
	}
	for _, name := range names {
		uses.mu.Lock()
		u := uses.beside[name](time.Now()).add(by[name])
		uses.mu.Unlock()
		loads = append(loads, max(u.cpu/worker.use().cpu, u.memory/worker.use().memory))
	}
	o := spreadOf(loads)
	o.pods, _, o.rate = w.rate()
	o.skipped = skipped(s.T, scheduler)
	return o
}

package extender

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/adapter/scheduler/extender"
)

// TestPodsAvoidPredictedOverload has a node fill up that nothing is requested of. By its requests
// it is the emptiest, and by what it uses now it has as much room as it should: only where it is
// going speaks against it.
func TestPodsAvoidPredictedOverload(t *testing.T) {
	t.Parallel()
	const (
		horizon = 40 * time.Second
		rise    = 0.02 // of the node, each second
		limit   = 0.95 // of the extender
	)
	for _, variant := range []struct {
		name   string
		reason string // that it is refused for
		of     use    // the node, as shares: what ramps
		flags  func(*testing.T) []string
	}{
		{"memory", "memory", use{0, 1}, func(*testing.T) []string { return nil }},
		{"memory-prometheus", "memory", use{0, 1},
			func(t *testing.T) []string { return askPrometheus(startPrometheus(t)) }},
		{"cpu", "cpu", use{1, 0}, func(*testing.T) []string {
			return []string{"--extender-cpu-limit",
				fmt.Sprint(limit)}
		}},
	} {
		t.Run(variant.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "overload-"+variant.name)
			nodes := s.addNodes(3, worker)
			ramping, steady := nodes[0], nodes[1:]
			fill := func(share float64) use {
				return use{variant.of.cpu * share * worker.use().cpu, variant.of.memory * share * worker.use().memory}
			}
			var begun atomic.Pointer[time.Time] // nil: not yet
			ramp := func(at time.Time) float64 {
				since := begun.Load()
				if since == nil {
					since = &at
				}
				return math.Min(0.15+rise*at.Sub(*since).Seconds(), 0.98)
			}
			uses.lay(t, ramping, func(at time.Time) use { return fill(ramp(at)) })
			for _, name := range steady {
				uses.lay(t, name, constantly(fill(0.3)))
			}
			uses.every(t, time.Second)
			f := startForesail(t, append(variant.flags(t), "test:extender-metrics-interval=1s",
				"test:extender-horizon="+horizon.String())...)
			asks := startScheduler(t, s.name, asking(t, f.address, patient))
			control := startScheduler(t, s.name+"-control", plain(t))

			// The ramping node has a pod that requests next to nothing: one without pods is refused
			// to nobody.
			s.resident(ramping, spec{app: "resident", cpu: "10m", memory: "16Mi"})
			for _, name := range steady {
				s.resident(name, spec{app: "resident", cpu: "1", memory: "2Gi"})
			}
			s.untilPredicted(f.probe, nodes)
			begun.Store(new(time.Now()))
			s.untilKnown(f.probe, "an overload to be predicted", []string{ramping}, func(n *extender.FilterNode) bool {
				share := n.Memory
				if variant.reason == "cpu" {
					share = n.CPU
				}
				return share != nil && share.Predicted != nil && *share.Predicted > limit*share.Allocatable
			})
			now := ramp(time.Now())
			assert.Less(t, now, target, "what the node uses when the pods come")
			const pods = 20
			like := spec{cpu: "50m", memory: "64Mi", uses: use{0.05, 64 << 20}}
			like.app, like.scheduler = "asks", asks.Name
			s.create(pods, like, nil)
			placed := on(s.placed(like.app, pods))
			like.app, like.scheduler = "control", control.Name
			s.create(pods, like, nil)
			controlled := on(s.placed(like.app, pods))

			refused := f.MustMetrics(t).Sum("foresail_extender_nodes_filtered_total", "reason", variant.reason)
			t.Logf("the node used %.0f%% when the pods came, and was to use %.0f%%: %d of %d pods with the extender (refused %.0f times), %d of %d without",
				100*now, 100*math.Min(now+rise*horizon.Seconds(),
					0.98), placed[ramping], pods, refused, controlled[ramping], pods)
			if refused == 0 {
				t.Log(f.Get(t.Context(), "/extender/pods/"+s.name+"/asks-0000"))
			}
			assert.Zero(t, placed[ramping], "pods on the node that will be overloaded")
			assert.Positive(t, controlled[ramping], "pods on that node without the extender")
			assert.Positive(t, refused)
		})
	}
}

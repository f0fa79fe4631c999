package report

import (
	"strconv"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/plan"
)

// A replica has three workers while it leads and seven while it does not: every scrape must find the number that
// belongs to the lease.
func TestScrapesReadWholeCycles(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry)
	stop := make(chan struct{})
	set := func(leading bool, workers int) {
		cycle := nodepool.CycleReport{Pool: "workers", Leading: leading, Snapshot: plan.Snapshot{Now: start}}
		for i := range workers {
			cycle.Snapshot.Instances = append(cycle.Snapshot.Instances, plan.Instance{
				Instance: fleet.Instance{Placement: fleet.Placement{Zone: strconv.Itoa(i)}},
				Worker:   true, Node: plan.Node{Ready: true},
			})
		}
		metrics.set(cycle)
	}
	set(true, 3)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				set(false, 7)
				set(true, 3)
			}
		}
	})
	defer group.Wait()
	defer close(stop)
	for range 300 {
		families, err := registry.Gather()
		require.NoError(t, err)
		sums := map[string]float64{}
		for _, f := range families {
			for _, metric := range f.Metric {
				sums[f.GetName()] += metric.GetGauge().GetValue()
			}
		}
		want := 7 - 4*sums["foresail_nodepool_leading"]
		require.Equal(t, want, sums["foresail_nodepool_workers"])
		require.Equal(t, want, sums["foresail_nodepool_instances"])
	}
}

package signal

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/plan"
)

// start is the first time of tests: not on a tick of the grid.
var start = time.Date(2026, 3, 2, 10, 0, 4, 300e6, time.UTC)

const (
	interval = 15 * time.Second
	node     = 4000 // milli-CPU of a node that pods other than DaemonSets' can use
)

// amounts returns an amount of CPU, with small amounts of the other resources.
func amounts(milli int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milli, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(milli<<10, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(milli/100, resource.DecimalSI),
	}
}

// worker returns a Ready node whose pods request milli-CPU in addition to its DaemonSets'.
func worker(name string, since time.Time, milli int64) cluster.Node {
	const daemons = 200
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(since)},
	}
	object.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(node+daemons, resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return cluster.Node{
		Object:     object,
		Ready:      true,
		ReadySince: since,
		Requested:  amounts(milli + daemons),
		DaemonSets: amounts(daemons),
	}
}

// workers returns n workers that have existed for an hour.
func workers(n int, milli int64) []cluster.Node {
	out := make([]cluster.Node, n)
	for i := range out {
		out[i] = worker(fmt.Sprint("w", i), start.Add(-time.Hour), milli)
	}
	return out
}

// nodes returns a demand for the CPU of n nodes.
func nodes(n float64) scheduling.Result { return scheduling.Result{CPU: n} }

// defaults returns the options of a pool without signals, with a threshold below 1 and a margin, so that tests can
// distinguish a forecast from the present load.
func defaults() Options {
	o := OptionsOf(&v1alpha1.WorkerPoolSpec{Max: 100})
	o.Signals[0].Threshold, o.Forecast.StartupTime, o.Forecast.ScaleDownMargin = 0.7, 2*time.Minute, new(0.3)
	return o
}

func newSet(t testing.TB, o Options) *Set {
	t.Helper()
	s, err := New(o)
	require.NoError(t, err)
	return s
}

// named returns the signal with a name.
func named(t testing.TB, all []plan.Signal, name string) plan.Signal {
	t.Helper()
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	require.Failf(t, "no signal", "%s of %v", name, all)
	return plan.Signal{}
}

// replay observes n ticks from start on, and returns a signal of each.
func replay(t testing.TB, s *Set, name string, n int, at func(i int, now time.Time) Observation) []plan.Signal {
	t.Helper()
	var out []plan.Signal
	for i := range n {
		now := start.Add(time.Duration(i) * interval)
		o := at(i, now)
		o.Now = now
		out = append(out, named(t, s.Observe(t.Context(), o), name))
	}
	return out
}

func quantityOf(s string) resource.Quantity { return resource.MustParse(s) }

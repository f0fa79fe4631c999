//go:build long

package nodejs

import (
	"context"
	"math"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/suite/nodejs/watt"
)

const (
	wattWork   = 20 * time.Millisecond // of a request
	wattPath   = "/work?ms=20"
	wattRate   = 40.0 // requests a second
	wattLoad   = 40 * time.Second
	wattRising = 20 // seconds of the load, in which pods are added, that are not compared
)

// page is what one Watt process reports of its application.
type page struct{ utilization, heap float64 }

// TestWatt has two replicas of Foresail read two Watt processes, without load and with it.
func TestWatt(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	installation, err := watt.Install(ctx, os.Stderr)
	require.NoError(t, err)
	r := newRig(t, "watt")
	second := r.secondReplica(t)
	r.deploy(t, program{node: installation.Node, arguments: installation.Arguments()})
	r.waitForForecasts(t)
	idle := r.look(t, 0, nil)
	t.Log(idle)
	assert.Less(t, idle.elu["load_per_instance"], 0.2,
		"no reader takes the time since another one read for a busy loop")
	assert.Less(t, forecastOf(second.MustMetrics(t), "watt-elu")["load_per_instance"], 0.2, "nor does the second")

	smallest, largest := math.Inf(1), 0.0 // heaps that a process reported
	var own, first, other mean            // of the utilizations of all pods, added up
	heaps := []float64{idle.heap["load_per_instance"]}
	for i, m := range r.underLoad(t, second) {
		t.Logf("%s; the processes report %.2f; the second replica has %.2f", m.moment, m.utilizations(),
			m.second["load_per_instance"])
		heaps = append(heaps, m.heap["load_per_instance"])
		for _, p := range m.pages {
			smallest, largest = min(smallest, p.heap), max(largest, p.heap)
		}
		if i < wattRising {
			continue
		}
		pods := float64(m.Ready)
		own.add(m.utilizations())
		first.add(m.elu["load_per_instance"] * pods)
		other.add(m.second["load_per_instance"] * pods)
	}
	require.Greater(t, own.count, 10, "seconds that are compared")
	offered := wattRate * wattWork.Seconds()
	assert.Greater(t, own.value(), 0.9*offered, "a loop is busy for the time of the work at least")
	assert.InEpsilon(t, own.value(), first.value(), 0.2, "the load is what the processes report")
	assert.InEpsilon(t, first.value(), other.value(), 0.1, "both replicas have the same load")
	// Foresail reads at other moments, and smooths: what tells bytes from other units is the order
	// of magnitude.
	assert.Less(t, slices.Max(heaps), 2*largest, "heaps are in bytes")
	assert.Greater(t, slices.Min(heaps), smallest/2, "heaps are in bytes")
	total, err := r.read(t, "watt-elu")
	require.NoError(t, err)
	assert.Greater(t, total, 0.9*offered, "the HPA reads the forecast of all pods")
}

// secondReplica starts another Foresail, which reads the same pods at the same moments.
func (r *rig) secondReplica(t *testing.T) *foresail.Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := r.stack.StartAdapter(context.WithoutCancel(ctx), "second") // until the cleanup
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Stop()) })
	require.NoError(t, a.WaitReady(ctx))
	return a.Process
}

// wattMoment is a moment with what each process reports.
type wattMoment struct {
	moment
	pages  []page
	second forecast // of the utilization, by the second replica
}

func (m wattMoment) utilizations() (sum float64) {
	for _, p := range m.pages {
		sum += p.utilization
	}
	return sum
}

// underLoad sends requests and looks at everything once a second.
func (r *rig) underLoad(t *testing.T, second *foresail.Process) (moments []wattMoment) {
	t.Helper()
	pods, err := loadgen.NewReadyPods(r.stack.Cluster.Client(), r.app.Namespace, r.app.Selector(), 0)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, pods.Start(ctx))
	require.Len(t, pods.Endpoints(), minPods)
	generator, err := loadgen.New(loadgen.Config{Profile: loadgen.Constant(wattRate, wattLoad), Endpoints: pods,
		Path: wattPath, MaxInFlight: inFlight})
	require.NoError(t, err)
	sent := make(chan loadgen.Report, 1)
	begun := time.Now()
	go func() {
		report, err := generator.Run(ctx)
		assert.NoError(t, err)
		sent <- report
	}()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case report := <-sent:
			t.Logf("%d requests served, %d failed; p50 %s", report.OK, report.Failed, report.Latency.P50)
			assert.Zero(t, report.Failed)
			return moments
		case <-ticker.C:
		}
		m := wattMoment{moment: r.look(t, time.Since(begun), nil),
			second: forecastOf(second.MustMetrics(t), "watt-elu")}
		for _, address := range pods.Endpoints() {
			m.pages = append(m.pages, readWatt(t, address))
		}
		moments = append(moments, m)
	}
}

// readWatt reads the page of the process that serves requests at an address.
func readWatt(t *testing.T, address string) page {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	host, _, err := net.SplitHostPort(address)
	require.NoError(t, err)
	families, err := foresail.ReadMetrics(ctx, "http://"+net.JoinHostPort(host, "9090")+"/metrics")
	require.NoError(t, err)
	v := values(families, "applicationId", "work")
	return page{utilization: v["eventloop_utilization"], heap: v["nodejs_heap_size_used_bytes"]}
}

// mean is that of some values.
type mean struct {
	sum   float64
	count int
}

func (m *mean) add(v float64) { m.sum, m.count = m.sum+v, m.count+1 }

func (m *mean) value() float64 { return m.sum / float64(m.count) }

// Package cost reads what a pool of workers has cost from a real Prometheus server.
package cost

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/cost"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/report"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/ports"
)

// replica is a process of Foresail as far as a Prometheus server sees it.
type replica struct{ reporter *report.Reporter }

// newReplicas returns two replicas, and the server that exposes the metrics of both: a scrape that
// fails on a busy machine must not look like a replica that has stopped.
func newReplicas(t *testing.T) (*replica, *replica, *httptest.Server) {
	t.Helper()
	registry := client.NewRegistry()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	objects := fake.NewClientBuilder().WithScheme(scheme).Build()
	newReplica := func(name string) *replica {
		metrics := report.NewMetrics(client.WrapRegistererWith(client.Labels{"instance": name}, registry))
		return &replica{reporter: report.New("workers", report.Options{Client: objects, Metrics: metrics})}
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	return newReplica("one"), newReplica("other"), server
}

// report reports workers in two zones, all of them Spot, of which one is not ready and one leaves.
// The leader does not know which pods are pending.
func (r *replica) report(ctx context.Context, leading bool, workers, asked int) {
	cycle := nodepool.CycleReport{
		Pool: "workers", At: time.Now(), Leading: leading,
		Decision: plan.Decision{Step: plan.Hold, Reason: plan.CoolingDown, Recommended: asked, Desired: workers},
		Snapshot: plan.Snapshot{
			Now:       time.Now(),
			Pool:      plan.Pool{Min: 1, Max: 9, SpotRatio: 0.5},
			Pending:   plan.Pending{Known: !leading, Pods: 2},
			Signals:   []plan.Signal{{Name: "cpu", Known: true, Now: 0.5, Desired: 3}, {Name: "queue", Known: true, Desired: 4}, {Name: "memory"}},
			Instances: []plan.Instance{{Instance: fleet.Instance{ID: "i-leaves"}, Worker: true, Leaving: true}},
		},
		Events: []journal.Event{{Reason: journal.EventLaunchFailed}},
	}
	for i := range workers {
		place := fleet.Placement{Zone: string(rune('a' + i%2)), InstanceType: "t3.small", Market: fleet.Spot}
		cycle.Snapshot.Instances = append(cycle.Snapshot.Instances, plan.Instance{
			Instance: fleet.Instance{ID: strconv.Itoa(i), Placement: place}, Worker: true, Node: plan.Node{Name: "n",
				Ready: i > 0},
		})
	}
	r.reporter.Report(ctx, cycle)
}

// tick calls report four times a second until the test ends.
func tick(t *testing.T, report func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for ticker := time.NewTicker(250 * time.Millisecond); ; {
			select {
			case <-ticker.C:
				report()
			case <-ctx.Done():
				ticker.Stop()
				return
			}
		}
	})
	t.Cleanup(func() { stop(); group.Wait() })
}

// startPrometheus starts a server that reads replicas every second, and returns its address.
func startPrometheus(t *testing.T, replicas *httptest.Server) string {
	t.Helper()
	binaries, err := monitoring.Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	home := t.TempDir()
	config := "global: {scrape_interval: 1s}\nscrape_configs: [{job_name: foresail, honor_labels: true, static_configs: [{targets: [" +
		strconv.Quote(strings.TrimPrefix(replicas.URL, "http://")) + "]}]}]\n"
	require.NoError(t, os.WriteFile(filepath.Join(home, "prometheus.yml"), []byte(config), 0o600))
	address, err := ports.TakeAddress()
	require.NoError(t, err)
	process, err := controlplane.StartProcess("prometheus", filepath.Join(binaries.Dir, "prometheus"),
		filepath.Join(home, "log"), home, []string{
			"--config.file=" + filepath.Join(home,
				"prometheus.yml"), "--web.listen-address=" + address, "--storage.tsdb.path=" + filepath.Join(home,
				"data"),
		})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(process.LogTail())
		}
		require.NoError(t, process.Stop(10*time.Second))
	})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		response, err := http.Get("http://" + address + "/-/ready")
		if assert.NoError(c, err) {
			assert.NoError(c, response.Body.Close())
			assert.Equal(c, http.StatusOK, response.StatusCode)
		}
	}, time.Minute, 100*time.Millisecond)
	return "http://" + address
}

// TestReadFromPrometheus checks that the metrics of the leader are read, and that what no replica
// knows is unknown.
func TestReadFromPrometheus(t *testing.T) {
	t.Parallel()
	leader, follower, server := newReplicas(t)
	tick(t, func() {
		leader.report(t.Context(), true, 3, 12)
		follower.report(t.Context(), false, 7, 20) // it sees another world
	})
	address := startPrometheus(t, server)
	servers := promapi.NewClients(promapi.Options{MaxSeries: 1000, MaxBytes: 32 << 20, UserAgent: "foresail"})
	api, err := servers.API(address)
	require.NoError(t, err)
	source := cost.Source{API: api, Address: address, Step: time.Second}

	var h *cost.History
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var err error
		h, err = cost.Read(t.Context(), source, "workers", time.Now(), 60*time.Second)
		if assert.NoError(c, err) {
			assert.GreaterOrEqual(c, len(h.Moments), 5)
			assert.Positive(c, h.Events["LaunchFailed"])
		}
	}, time.Minute, time.Second)
	assert.Equal(t, 60, len(h.Moments)+h.Unknown, "what was before the first scrape is unknown")
	assert.Positive(t, h.Unknown)
	last := h.Moments[len(h.Moments)-1]
	assert.True(t, last.At.After(h.From) && !last.At.After(h.To))
	last.At = time.Time{}
	assert.Equal(t, cost.Moment{
		Instances: map[cost.Kind]int{{InstanceType: "t3.small",
			Market: fleet.Spot}: 3}, Gone: 1, Recommended: 12, Min: 1, Max: 9,
		BySignals: new(4), SpotTarget: new(2), Load: map[string]float64{"cpu": 0.5, "queue": 0},
	}, last)
	assert.Positive(t, h.Decisions["CoolingDown"])

	_, err = cost.Read(t.Context(), source, "wrokers", time.Now(), time.Minute)
	assert.ErrorIs(t, err, cost.ErrNoPool)
	assert.ErrorContains(t, err, `it has nothing of the pool "wrokers" between `)
	assert.ErrorContains(t, err, ", but others: workers")
	_, err = cost.Read(t.Context(), source, "workers", time.Now().Add(-24*time.Hour), time.Minute)
	assert.ErrorContains(t, err, "but no pool at all: it must be a server that reads Foresail's /metrics")
}

// TestReadWithoutALeader checks that the metrics of any replica are read while all of them agree.
func TestReadWithoutALeader(t *testing.T) {
	t.Parallel()
	one, other, server := newReplicas(t)
	tick(t, func() {
		one.report(t.Context(), false, 3, 4)
		other.report(t.Context(), false, 3, 4)
	})
	address := startPrometheus(t, server)
	api, err := promapi.NewClients(promapi.Options{MaxSeries: 1000, MaxBytes: 32 << 20}).API(address)
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		h, err := cost.Read(t.Context(), cost.Source{API: api, Address: address, Step: time.Second}, "workers",
			time.Now(), 30*time.Second)
		if assert.NoError(c, err) {
			assert.Equal(c, 3, h.Moments[len(h.Moments)-1].Workers())
			assert.Equal(c, 4, h.Moments[len(h.Moments)-1].Recommended)
			assert.Equal(c, new(2), h.Moments[len(h.Moments)-1].Pending)
		}
	}, time.Minute, time.Second)
}

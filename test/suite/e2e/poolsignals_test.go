package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/signal"
	"github.com/foresail/foresail/test/env/monitoring"
)

// poolSignals reads the signals of a pool of two workers from a real Prometheus, once.
func poolSignals(t *testing.T, p *monitoring.Prometheus, seasonal string,
	queries map[string]v1alpha1.SignalQuery) (map[string]plan.Signal, *signal.Set) {
	t.Helper()
	spec := v1alpha1.WorkerPoolSpec{Min: 1, Max: 10}
	for name, query := range queries {
		spec.Signals = append(spec.Signals, v1alpha1.PoolSignal{Name: name, Threshold: resource.MustParse("700m"),
			Prometheus: &query})
	}
	weeks := int32(12)
	spec.Seasonal = &v1alpha1.SeasonalFloor{Query: seasonal, Weeks: &weeks}
	o := signal.OptionsOf(&spec)
	o.DefaultAddress = p.URL
	o.Servers = promapi.NewClients(promapi.Options{MaxSeries: 1000, MaxBytes: 32 << 20, UserAgent: "foresail"})
	set, err := signal.New(o)
	require.NoError(t, err)
	now := time.Now()
	workers := make([]cluster.Node, 2)
	for i := range workers {
		object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("w", i)}}
		object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprint("10.0.0.", i)}}
		workers[i] = cluster.Node{Object: object, Ready: true, ReadySince: now.Add(-time.Hour)}
	}
	signals := map[string]plan.Signal{}
	for _, s := range set.Observe(t.Context(), signal.Observation{Now: now, Workers: workers, Expected: 2}) {
		signals[s.Name] = s
	}
	return signals, set
}

// A real Prometheus answers what signals of a pool ask: values of nodes by name and address, rises,
// and what it refuses.
func TestPoolSignalsFromPrometheus(t *testing.T) {
	t.Parallel()
	p := startPrometheus(t, monitoring.PrometheusOptions{Name: "pool-signals", Selector: "app=none"})
	node := func(value, name string) string {
		return fmt.Sprintf(`label_replace(%s, "node", %q, "", "")`, value, name)
	}
	began := time.Now().Add(-15 * time.Minute).Unix()
	rise := fmt.Sprintf("clamp_min(vector((time() - %d) / 1000), 0)", began) // 0.9 now, and 0.97 in 72 s
	signals, set := poolSignals(t, p, "vector(3.2) + hour() * 0", map[string]v1alpha1.SignalQuery{
		"level": {Query: node("vector(0.5)", "w0") + " or " + node("vector(0.6)", "10.0.0.1:9100"),
			NodeLabel: "node"},
		"rise":    {Query: node(rise, "w0") + " or " + node(rise, "w1"), NodeLabel: "node"},
		"queue":   {Query: "vector(3.5)"},
		"latency": {Query: "vector(0.9)", Value: v1alpha1.PoolValueLevel},
		"twice": {Query: node("vector(0.5)",
			"w0") + " or " + node("label_replace(vector(1), \"job\", \"b\", \"\", \"\")", "w0"), NodeLabel: "node"},
		"nan":    {Query: node("vector(0/0)", "w0") + " or " + node("vector(0/0)", "w1"), NodeLabel: "node"},
		"broken": {Query: "sum("},
		"string": {Query: `"text"`},
		"absent": {Query: "absent_metric"},
	})
	level := signals["level"]
	assert.True(t, level.Known, level.Err)
	assert.InDelta(t, 0.55, level.Now, 1e-9)
	assert.Equal(t, 2, level.Desired)
	rising := signals["rise"]
	assert.True(t, rising.Known, rising.Err)
	assert.InDelta(t, 0.9, rising.Now, 0.08)
	assert.Greater(t, rising.Predicted, rising.Now+0.05)
	assert.Equal(t, 3, rising.Desired)
	assert.Equal(t, 5, signals["queue"].Desired, signals["queue"].Err)
	assert.Equal(t, 3, signals["latency"].Desired, signals["latency"].Err)
	for name, message := range map[string]string{
		"twice":  "at once: must be one series",
		"nan":    "more than half of the workers have no fresh samples: 2 of 2",
		"broken": `query "sum(" is rejected: `,
		"string": "is rejected: ",
		"absent": "returns no series: must return one",
	} {
		assert.False(t, signals[name].Known, name)
		assert.Contains(t, signals[name].Err, message, name)
	}
	eventually(t, time.Minute, "twelve weeks are learned", func(c *assert.CollectT) {
		floor := set.Seasonal(t.Context(), time.Now(), 0)
		assert.Equal(c, plan.Seasonal{Known: true, Nodes: 4, Confidence: 1}, *floor)
	})
}

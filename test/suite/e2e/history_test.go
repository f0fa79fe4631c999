package e2e

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/prometheus"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/stack"
)

const (
	// historyDays is how many days the server of these tests has of pods that are gone.
	historyDays = 8
	// storedEach is how far apart its samples are.
	storedEach = 20 * time.Second
	staleNaN   = 0x7ff0000000000002 // Prometheus' mark of a series that has ended
)

// pastPod is the readings of a pod, or of another thing with such labels, some time ago.
type pastPod struct {
	labels   map[string]string
	from, to time.Duration // ago; it ends with the mark that Prometheus makes for pods that are gone
	value    float64
}

func (p *pastPod) series(name string, now time.Time) prompb.TimeSeries {
	var out prompb.TimeSeries
	p.labels["__name__"] = name
	for _, label := range slices.Sorted(maps.Keys(p.labels)) {
		out.Labels = append(out.Labels, prompb.Label{Name: label, Value: p.labels[label]})
	}
	at := now.Add(-p.from)
	for ; at.Before(now.Add(-p.to)); at = at.Add(storedEach) {
		out.Samples = append(out.Samples, prompb.Sample{Timestamp: at.UnixMilli(), Value: p.value})
	}
	out.Samples = append(out.Samples, prompb.Sample{Timestamp: at.UnixMilli(), Value: math.Float64frombits(staleNaN)})
	return out
}

// pastDays are the days of a Deployment whose pods were replaced each day, the last of them hours
// ago, and of others.
func pastDays(namespace, deployment string) (all []pastPod) {
	names := []string{"7d4b9f6c8-x2kzl", "5c689d88bb-4tqxz", "64bd9c57f8-kkp7m", "9bfc4d6b7-9zw8h"}
	labels := func(pod, app string) map[string]string {
		return map[string]string{"namespace": namespace, "pod": pod, "app": app}
	}
	for day := range time.Duration(historyDays) {
		from, to := (day+1)*24*time.Hour, day*24*time.Hour
		if day == 0 {
			to = 3 * time.Hour // a pause, in which there was no pod
		}
		for half := range 2 {
			pod := deployment + "-" + names[(2*int(day)+half)%len(names)]
			all = append(all, pastPod{labels(pod, deployment), from, to, 0.25 + float64(half)/10})
		}
	}
	return append(all,
		pastPod{labels(deployment+"-api-7d4b9f6c8-x2kzl", deployment), historyDays * 24 * time.Hour, 0, 100},
		pastPod{labels(deployment+"-0", deployment), historyDays * 24 * time.Hour, 0, 100},
		pastPod{map[string]string{"namespace": "another", "pod": deployment + "-7d4b9f6c8-x2kzl", "app": deployment},
			historyDays * 24 * time.Hour, 0, 100},
	)
}

// TestHistoryFromPrometheus: what a real Prometheus has of pods that are gone becomes what is
// learned of their Deployment.
func TestHistoryFromPrometheus(t *testing.T) {
	t.Parallel()
	app := newApp("history", "web", "predicted_load_total")
	server := startPrometheus(t, monitoring.PrometheusOptions{Name: "prometheus-history", Selector: app.Selector(),
		History: 10 * 24 * time.Hour})
	now := time.Now()
	for _, pod := range pastDays(app.Namespace, app.Name) {
		require.NoError(t, server.Write(t.Context(), pod.series(stack.Utilization, now)))
	}
	t.Run("the load of pods that are gone", func(t *testing.T) { readsHistory(t, server, app, now) })

	app.Source = scraped(server, app, time.Second)
	deploy(t, app)
	eventually(t, 3*time.Minute, "what the server has is learned", func(c *assert.CollectT) {
		learned := statusOf(c, app).Learned
		require.NotNil(c, learned)
		assert.InDelta(c, 7*24, learned.Hours(), 5)
	})
	families, err := adapter.Metrics(t.Context())
	require.NoError(t, err)
	assert.InDelta(t, 1, families.Sum("foresail_history_reads_total", "result", "Filled"), 0)
	assert.InDelta(t, historyDays*24-3, families.Sum("foresail_history_filled_seconds_total")/3600, 1)
}

// readsHistory compares the load that the source reads with that of the pods.
func readsHistory(t *testing.T, server *monitoring.Prometheus, app stack.App, now time.Time) {
	reader := prometheus.New(prometheus.Options{})
	key := types.NamespacedName{Namespace: app.Namespace, Name: app.Name}
	fleet := sourcetest.NewFleet(podtracker.Instance{
		ID: "a", Pod: types.NamespacedName{Namespace: app.Namespace, Name: app.Name + "-7d4b9f6c8-x2kzl"}, Start: now,
	})
	require.NoError(t, reader.Set(key, prometheus.Config{
		Address: server.URL, Query: scraped(server, app,
			0).Prometheus.Query, PodLabel: "pod", Type: source.Gauge, Interval: 5 * time.Second, Window: time.Minute,
		Target: schema.GroupKind{Group: "apps", Kind: "Deployment"}, TargetName: app.Name,
	}, fleet, sourcetest.NewRecorder()))
	params := pipeline.AdaptiveParams()
	params.Threshold = 0.7
	h, err := reader.History(t.Context(), key, &params, historyDays*24*time.Hour)
	require.NoError(t, err)
	require.Len(t, h.Minutes, historyDays*24*60)
	for i, m := range h.Minutes {
		ago := now.Sub(time.UnixMilli(h.Begin).Add(time.Duration(i+1) * time.Minute))
		switch intoDay := ago % (24 * time.Hour); {
		case ago < 3*time.Hour-time.Minute:
			require.True(t, math.IsNaN(m.Mean), "%s ago there was no pod, and no load of zero: %v", ago, m.Mean)
		case ago > 3*time.Hour && ago < historyDays*24*time.Hour-5*time.Minute && intoDay > 3*time.Minute &&
			intoDay < 24*time.Hour-3*time.Minute:
			require.InDelta(t, 0.6, m.Mean, 1e-9, "%s ago", ago)
		case !math.IsNaN(m.Mean):
			require.InDelta(t, 0.6, m.Mean, 0.36, "%s ago, when pods were replaced", ago)
		}
	}
}

//go:build long

package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/stack"
)

// TestOldestPrometheus queries the oldest supported Prometheus, and has it send in both versions of
// remote write.
func TestOldestPrometheus(t *testing.T) {
	t.Parallel()
	binaries, err := monitoring.BuildOldest(t.Context(), os.Stderr)
	require.NoError(t, err)
	const load = 1.4 // two pods at the threshold
	steady := func(name string) stack.App {
		a := newApp("oldest", name, "predicted_load_total")
		shared.Shares.Set(a.Namespace, a.Name, func() float64 { return load })
		t.Cleanup(func() { shared.Shares.Set(a.Namespace, a.Name, nil) })
		return a
	}
	queried := steady("queried")
	options := monitoring.PrometheusOptions{Name: "prometheus-oldest", Selector: queried.Selector(), Binaries: binaries}
	queried.Source = scraped(startPrometheus(t, options), queried, time.Second)
	apps := []stack.App{queried}
	for _, version := range []int{1, 2} {
		a := steady(fmt.Sprintf("sent-v%d", version))
		a.Source = written()
		agent := pushed.agent("agent-oldest-"+a.Name, a, &pushed.user)
		agent.Binaries, agent.RemoteWrite[0].Version = binaries, version
		if version == 2 { // without it this release does not start
			agent.ExtraArgs = []string{"--enable-feature=metadata-wal-records"}
		}
		startPrometheus(t, agent)
		apps = append(apps, a)
	}
	place(t, apps...)
	for _, a := range apps {
		waitForForecastWithin(t, a, 3*time.Minute)
		eventually(t, 2*time.Minute, a.Name, func(c *assert.CollectT) {
			value, err := stack.ReadMetric(metricsClient(t), a)
			require.NoError(c, err)
			assert.InDelta(c, load, value, 0.5*load)
			status := statusOf(c, a)
			assert.Equal(c, metav1.ConditionTrue, conditionOf(status, v1alpha1.ConditionSamplesFresh).Status)
			require.NotNil(c, status.SampleInterval)
			assert.InDelta(c, time.Second, status.SampleInterval.Duration, float64(time.Second))
		})
	}
}

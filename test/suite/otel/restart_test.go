//go:build long

package otel

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/remotewrite"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/test/env/ports"
)

// TestCollectorLosesNothing has Foresail's receiver end while applications export. Once another one
// serves at its address, and has been asked for its pods in vain twice, it has all that was
// exported meanwhile.
func TestCollectorLosesNothing(t *testing.T) {
	address, err := ports.TakeAddress()
	require.NoError(t, err)
	collector := startCollector(t, current, address)
	pod := podtracker.Instance{ID: "uid-web-0", Pod: types.NamespacedName{Namespace: "shop", Name: "web-0"},
		Start: time.Now().Add(-time.Minute)}
	gauges, sums := sourcetest.NewRecorder(), sourcetest.NewRecorder()
	receive := func(ready func() error) (stop func()) {
		s := remotewrite.New(remotewrite.Options{Address: address, BearerTokenFile: tokenFile(t), Ready: ready})
		for metric, sink := range map[string]*sourcetest.Recorder{"app_busy_ratio": gauges, "app_open": sums} {
			c := remotewrite.Config{Metric: metric, Type: source.Gauge, PodLabel: "pod"}
			s.Set(types.NamespacedName{Namespace: "shop", Name: metric}, c, sourcetest.NewFleet(pod), sink)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var serving sync.WaitGroup
		serving.Go(func() { assert.NoError(t, s.Run(ctx)) })
		return func() {
			cancel()
			serving.Wait()
		}
	}

	provider := exporting(t, collector, "web-0")
	busy, err := provider.Meter("app").Float64Gauge("app.busy", metric.WithUnit("1"))
	require.NoError(t, err)
	// A sum that is read as it is.
	open, err := provider.Meter("app").Int64UpDownCounter("app.open", metric.WithUnit("{request}"))
	require.NoError(t, err)
	var exportedBusy, exportedOpen []float64
	export := func() {
		n := len(exportedBusy) + 1
		busy.Record(t.Context(), float64(n)/100)
		open.Add(t.Context(), 5)
		require.NoError(t, provider.ForceFlush(t.Context()))
		exportedBusy, exportedOpen = append(exportedBusy, float64(n)/100), append(exportedOpen, float64(5*n))
	}
	arrives := func() {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			assert.ElementsMatch(c, exportedBusy, gauges.Values(pod.ID))
			assert.ElementsMatch(c, exportedOpen, sums.Values(pod.ID))
		}, time.Minute, 100*time.Millisecond)
	}

	stop := receive(nil)
	for range 3 {
		export()
	}
	arrives()
	stop()
	for range 3 {
		export()
	}
	var asked atomic.Int64
	stop = receive(func() error {
		if asked.Add(1) <= 2 {
			return errors.New("pods are not known yet")
		}
		return nil
	})
	defer stop()
	arrives()
	assert.Greater(t, asked.Load(), int64(2))
}

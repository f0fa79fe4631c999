package sourcetest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Run has a source run until the test, or its bubble, ends.
func Run(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
}

// Pass lets virtual time pass and everything come to rest.
func Pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Gathered sums a metric of a registry over its series, of which there must be one, that have a label value ("" = all).
// Of a histogram, it counts.
func Gathered(tb testing.TB, r prometheus.Gatherer, name, labelValue string) float64 {
	tb.Helper()
	families, err := r.Gather()
	require.NoError(tb, err)
	sum, found := 0.0, false
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			matches := labelValue == ""
			for _, l := range m.GetLabel() {
				matches = matches || l.GetValue() == labelValue
			}
			if matches {
				found = true
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	require.True(tb, found, "no metric %s with %q", name, labelValue)
	return sum
}

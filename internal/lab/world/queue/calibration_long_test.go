//go:build long

package queue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestModelIsCalibrated plays what the model was fitted to, and compares it with what the paper measured.
func TestModelIsCalibrated(t *testing.T) {
	const seeds = 20
	for _, c := range []struct {
		profile, scaler    string
		success, mean, p90 float64 // as the paper measured: %, ms, ms
	}{
		{"ramp", "keda", 95.11, 1174, 3530},
		{"ramp", "hpa-cpu", 90.97, 1499, 4168},
		{"spike", "keda", 87.47, 1989, 6108},
		{"spike", "hpa-cpu", 77.31, 2205, 7338},
	} {
		t.Run(c.profile+" "+c.scaler, func(t *testing.T) {
			t.Parallel()
			var success, mean, p50, p90, p99 float64
			for seed := uint64(1); seed <= seeds; seed++ {
				r := played(t, c.profile, c.scaler, seed)
				success += r.Success() * 100 / seeds
				mean += r.Latency.Mean() / seeds
				p50 += r.Latency.Quantile(0.5) / seeds
				p90 += r.Latency.Quantile(0.9) / seeds
				p99 += r.Latency.Quantile(0.99) / seeds
			}
			t.Logf("success %.1f%%, mean %.0f ms, p50 %.0f ms, p90 %.0f ms, p99 %.0f ms", success, mean, p50, p90, p99)
			assert.InDelta(t, c.success, success, 5)
			assert.InEpsilon(t, c.mean, mean, 0.25)
			assert.InEpsilon(t, c.p90, p90, 0.25)
		})
	}
}

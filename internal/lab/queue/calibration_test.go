package queue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/queue"
	"github.com/foresail/foresail/internal/lab/scaler"
)

// TestTheModelIsAsFarFromThePaperAsItWasFitted plays what the model was fitted to. It is frozen: where this fails, what has
// changed is the model or what feeds the HPAs, and findings from before do not compare with findings from after.
func TestTheModelIsAsFarFromThePaperAsItWasFitted(t *testing.T) {
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
			if testing.Short() && c.profile == "ramp" {
				t.Skip("takes seconds")
			}
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

// played returns what became of the requests of a run with thresholds of 70%.
func played(t testing.TB, profile, name string, seed uint64) queue.Requests {
	c, span := config(t, profile, seed)
	s, err := scaler.New(name, scaler.Setup{Threshold: 0.7, Min: c.Min, Max: c.Max, Seed: seed, Load: c.Load, Cost: c.Model.Service / 1000})
	require.NoError(t, err)
	w := queue.New(c)
	record := lab.Run(w, s, span, nil)
	return w.Requests(record.From)
}

func BenchmarkRamp(b *testing.B) {
	for b.Loop() {
		played(b, "ramp", "keda", 1)
	}
}

package queue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/world/queue"
)

// TestModelIsFrozen plays one seed of what the model was fitted to. Where it fails, the model or
// what feeds the HPAs has changed, and earlier findings do not compare with later ones.
// TestModelIsCalibrated has the band of all seeds.
func TestModelIsFrozen(t *testing.T) {
	for _, c := range []struct {
		profile, scaler    string
		success, mean, p90 float64 // %, ms, ms
	}{
		{"ramp", "keda", 94.27, 1047.7, 3831},
		{"spike", "keda", 85.54, 1917.5, 5702},
		{"spike", "hpa-cpu", 85.23, 1940.9, 5722},
	} {
		r := played(t, c.profile, c.scaler, 1)
		assert.InDelta(t, c.success, 100*r.Success(), 0.1, c)
		assert.InEpsilon(t, c.mean, r.Latency.Mean(), 0.01, c)
		assert.InEpsilon(t, c.p90, r.Latency.Quantile(0.9), 0.01, c)
	}
}

// played returns what became of the requests of a run with thresholds of 70%.
func played(t testing.TB, profile, name string, seed uint64) queue.Requests {
	c, span := config(t, profile, seed)
	s, err := scaler.New(name, scaler.Setup{Threshold: 0.7, Min: c.Min, Max: c.Max, Seed: seed, Load: c.Load,
		Cost: c.Model.Service / 1000})
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

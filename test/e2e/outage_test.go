package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/loadgen"
	"github.com/foresail/foresail/test/stack"
)

// TestZOutage kills the adapter for a minute under a constant load. It runs after the parallel tests, which need it.
func TestZOutage(t *testing.T) {
	const (
		settle  = 60 * time.Second
		outage  = 60 * time.Second
		after   = 90 * time.Second
		pods    = 6
		perPod  = 13.0 // requests a second; 0.52 of a pod's time
		restart = settle + outage
	)
	app := newApp("outage", "steady", "predicted_load_total")
	app.Replicas = pods
	app.Min = 3
	app.ScaleDownWindow = 600 // replicas that fall would be ours to answer for, not the HPA's
	deploy(t, app)

	killed := time.AfterFunc(settle, func() { assert.NoError(t, adapter.Kill()) })
	defer killed.Stop()
	restarted := make(chan error, 1)
	again := time.AfterFunc(restart, func() {
		a, err := shared.StartAdapter(t.Context(), "adapter-again")
		if err == nil {
			err = shared.Register(t.Context(), a)
		}
		restarted <- err
	})
	defer again.Stop()
	run, err := shared.Play(t.Context(), app, loadgen.Constant(pods*perPod, settle+outage+after), nil)
	require.NoError(t, err)
	require.NoError(t, <-restarted)

	before := served(during(run, settle/2, settle))
	require.NotEmpty(t, before)
	for _, m := range during(run, settle+time.Second, restart) {
		assert.Error(t, m.Err, "a value was served at %s, while the adapter was dead", m.At)
	}
	for _, m := range run.Moments {
		assert.Equal(t, pods, m.Replicas, "replicas at %s", m.At)
	}
	recovered := served(during(run, restart, settle+outage+after))
	require.NotEmpty(t, recovered, "no value after the restart")
	assert.Less(t, run.Moments[len(run.Moments)-len(recovered)].At-restart, 45*time.Second, "time to the first value after the restart")
	lowest, highest := bounds(before)
	low, high := bounds(recovered)
	t.Logf("served before the outage %.2f to %.2f, after it %.2f to %.2f", lowest, highest, low, high)
	assert.GreaterOrEqual(t, low, lowest*0.85)
	assert.LessOrEqual(t, high, highest*1.15)
}

func served(moments []stack.Moment) []float64 {
	var out []float64
	for _, m := range moments {
		if m.Err == nil {
			out = append(out, m.Served)
		}
	}
	return out
}

func bounds(values []float64) (low, high float64) {
	low, high = values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

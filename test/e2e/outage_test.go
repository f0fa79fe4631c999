package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/loadgen"
	"github.com/foresail/foresail/test/stack"
)

// TestOutage kills the adapter for a minute under a constant load. It is not parallel, so it is over before the tests that
// are go on; they have the adapter that it leaves.
func TestOutage(t *testing.T) {
	const (
		settle  = 100 * time.Second // the load begins all at once, which is a spike at first
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
		a, err := shared.StartAdapter(suite, "adapter-again")
		if err == nil {
			adapter = a
			err = shared.Register(t.Context(), a)
		}
		restarted <- err
	})
	defer again.Stop()
	run, err := shared.Play(t.Context(), app, loadgen.Constant(pods*perPod, settle+outage+after), nil)
	require.NoError(t, err)
	require.NoError(t, <-restarted)

	before := served(during(run, settle-30*time.Second, settle))
	require.NotEmpty(t, before)
	for _, m := range during(run, settle+time.Second, restart) {
		assert.Error(t, m.Err, "a value was served at %s, while the adapter was dead", m.At)
	}
	kept := during(run, settle-time.Second, settle)[0].Replicas
	for _, m := range during(run, settle, settle+outage+after) {
		require.Equal(t, kept, m.Replicas, "replicas at %s", m.At)
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

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRollingUpdate replaces every pod under a constant load: what is served shows neither a spike
// nor a fall, and nothing is scaled.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	const rps = 55.0
	app := newApp("rollout", "app", "predicted_load_total")
	app.Replicas, app.Min = 5, 5
	deploy(t, app)
	s := beginSteady(t, app, rps)
	s.settle(t)
	// A steep rise may be forecast to go on for a moment, and need more pods.
	s.next(t, time.Now(), 2*time.Minute, "no more replicas than the load needs",
		func(x sighting) bool { return x.Replicas == app.Replicas })

	begin := time.Now()
	replacePods(t, app)
	s.next(t, begin.Add(3*time.Minute/timeScale), 3*time.Minute, "the effects of the update",
		func(sighting) bool { return true })

	var values []float64
	for _, x := range s.since(begin) {
		require.Equal(t, app.Replicas, x.Replicas, "replicas at %s, when %.2f is served", x.At, x.Served)
		require.NoError(t, x.Err, "at %s", x.At)
		values = append(values, x.Served)
	}
	low, high := bounds(values)
	t.Logf("served %.2f to %.2f for a load of %.2f", low, high, s.load)
	assert.LessOrEqual(t, high, max(s.load*1.4, carried(app, app.Replicas)))
	assert.GreaterOrEqual(t, low, s.load*0.7)
}

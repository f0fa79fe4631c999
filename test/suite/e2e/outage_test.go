package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
)

// TestOutage kills the adapter for a minute in which the load falls: nothing is scaled on the old
// numbers, and what is served afterwards is the new load. It is not parallel, so it is over before
// the tests that are go on; they have the adapter that it leaves.
func TestOutage(t *testing.T) {
	const (
		grow    = 60 * time.Second / timeScale
		kill    = 90 * time.Second / timeScale
		fall    = kill + 10*time.Second/timeScale
		restart = kill + time.Minute/timeScale
		// a new adapter needs ten readings, a second apart
		end = restart + 25*time.Second + 45*time.Second/timeScale

		high, low = 78.0, 50.0 // requests a second
	)
	app := newApp("outage", "app", "predicted_load_total")
	app.Replicas, app.Min = 6, 3
	app.ScaleDownWindow = 600 // so that what moves the replicas within this test is a forecast that is too high
	deploy(t, app)

	killed := time.AfterFunc(kill, func() { assert.NoError(t, adapter.Kill()) })
	defer killed.Stop()
	restarted := make(chan error, 1)
	again := time.AfterFunc(restart, func() {
		a, err := runAdapter(suite, "adapter-again", pushed.flags()...)
		if err == nil {
			adapter = a
			err = shared.Register(t.Context(), a)
		}
		restarted <- err
	})
	defer again.Stop()
	profile := loadgen.Profile{
		{At: 0, RPS: 5}, {At: grow, RPS: high}, {At: fall, RPS: high}, {At: fall + 10*time.Second/timeScale,
			RPS: low}, {At: end, RPS: low},
	}
	run, err := shared.Play(t.Context(), app, profile, nil)
	require.NoError(t, err)
	require.NoError(t, <-restarted)

	for _, m := range during(run, kill+time.Second, restart) {
		require.Error(t, m.Err, "a value was served at %s, while the adapter was dead", m.At)
	}
	before := during(run, grow, kill)
	kept := before[len(before)-1].Replicas
	for _, m := range during(run, kill, end) {
		require.Equal(t, kept, m.Replicas, "replicas at %s", m.At)
	}
	recovered := during(run, restart, end)
	for len(recovered) > 0 && recovered[0].Err != nil {
		recovered = recovered[1:]
	}
	require.NotEmpty(t, recovered, "no value after the restart")
	load := low * app.ServiceTime.Seconds()
	least, most := bounds(served(recovered))
	t.Logf("first value %s after the restart; served from then on %.2f to %.2f for a load of %.2f",
		(recovered[0].At - restart).Round(time.Second), least, most, load)
	assert.Less(t, recovered[0].At-restart, 45*time.Second, "time to the first value after the restart")
	assert.Greater(t, least, load*0.7)
	assert.Less(t, most, load*1.4)
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

package scaler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryScalerFollowsARamp(t *testing.T) {
	load := ramp(200, 1000, 70_000, 220_000)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			r := play(t, name, testSetup(load), need(200), 5*time.Minute)
			last := r.Seconds[len(r.Seconds)-1]
			assert.GreaterOrEqual(t, last.Ready, need(1000)-1, "within the HPA's tolerance")
			assert.LessOrEqual(t, last.Ready, need(1000)+4)
			again := play(t, name, testSetup(load), need(200), 5*time.Minute)
			require.Equal(t, r, again, "a run is a function of its seed")
			t.Log(r.Changes)
		})
	}
}

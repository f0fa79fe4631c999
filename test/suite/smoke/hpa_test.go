package smoke

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
)

// The load rises from what one pod carries to what nine pods carry at the threshold, in the time
// that three starts of a pod take, and stays there until the HPA has looked again and its pods are
// ready.
const (
	lowRate, topRate = 4.0, 150.0
	rampStart        = 15 * time.Second / timeScale
	rampEnd          = rampStart + 90*time.Second/timeScale
	rampStop         = rampEnd + 45*time.Second/timeScale
)

// TestHPAFollowsForecast plays a ramp of real requests to two applications at once, whose HPAs
// differ only in that one reads the forecast and the other one the present load.
func TestHPAFollowsForecast(t *testing.T) {
	t.Parallel()
	predicted := stack.App{
		Namespace: "ramp", Name: "predicted", Metric: "predicted_load_total", Replicas: 4, Min: 4, Max: 20,
		ServiceTime: 40 * time.Millisecond, Threshold: resource.MustParse("700m"),
	}
	reactive := predicted
	reactive.Name, reactive.Reactive = "reactive", true
	profile := loadgen.Profile{
		{At: 0, RPS: lowRate}, {At: rampStart, RPS: lowRate}, {At: rampEnd, RPS: topRate}, {At: rampStop, RPS: topRate},
	}
	runs := play(t, profile, predicted, reactive)

	ahead, behind := runs[0], runs[1]
	needed := int(math.Ceil(topRate * predicted.ServiceTime.Seconds() / predicted.Threshold.AsApproximateFloat64()))
	last := ahead.Moments[len(ahead.Moments)-1]
	assert.GreaterOrEqual(t, last.Ready, needed, "ready pods at the top of the ramp")
	for _, m := range ahead.Moments {
		require.NoError(t, m.Err, "the metric at %s", m.At)
	}
	lead := time.Duration(0)
	for n := predicted.Replicas + 1; n <= needed; n++ {
		first, ok := ahead.Reached(n)
		require.True(t, ok, "%d replicas", n)
		second, ok := behind.Reached(n)
		if !ok {
			second = rampStop
		}
		lead += second - first
	}
	t.Logf("pod-seconds short of the threshold: %d with a forecast, %d without; replicas were requested %s earlier on average",
		ahead.Shortfall(), behind.Shortfall(), (lead / time.Duration(needed-predicted.Replicas)).Round(100*time.Millisecond))
	assert.Positive(t, lead, "the sum of the leads over the HPA that reads the present load")
	assert.Less(t, ahead.Shortfall(), behind.Shortfall())
}

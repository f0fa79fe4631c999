package dashboard

import (
	"encoding/json"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving/servingtest"
	"github.com/foresail/foresail/pipeline"
)

func TestTrace(t *testing.T) {
	m := servingtest.NewMemory(rising("checkout"))
	h := New(m, at(servingtest.Now)).Handler()
	const path = MetricsPath + "/shop/checkout/trace"
	code, body := get(t, h, path)
	assert.Equal(t, http.StatusOK, code)
	assert.JSONEq(t, `{"forecast": null}`, body)

	s := rising("checkout")
	now := servingtest.Now.UnixMilli()
	s.Forecast.Tick, s.Forecast.Trend, s.Forecast.Dropped = now-1500, 0.2, 3
	m.PublishTrace(s.Metric, &snapshot.Trace{
		At: servingtest.Now, Forecast: s.Forecast, AllPods: 5,
		Stages: pipeline.Trace{
			First: now - 3500, Interval: 2 * time.Second, Sum: []float64{1, 2}, Load: []float64{1, 1.5},
			Clipped: []bool{false, true},
			Instances: []pipeline.TracedInstance{{ID: "uid", Values: []float64{math.NaN(), 0.25}, AlignedFrom: 1,
				AlignedTo: 2}},
		},
		Pods: []snapshot.TracedPod{{Name: "checkout-1", Samples: []pipeline.Sample{{T: now - 1750, V: 0.25}}}},
	})
	code, body = get(t, h, path)
	assert.Equal(t, http.StatusOK, code)
	second := servingtest.Now.Unix()
	var got struct{ Forecast map[string]any }
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	assert.Equal(t, map[string]any{
		"at": float64(second), "tick": float64(second) - 1.5, "first": float64(second) - 3.5,
		"stepSeconds": 2.0, "horizonSeconds": 30.0,
		"pods": []any{map[string]any{
			"name": "checkout-1", "sampledAt": []any{float64(second) - 1.75}, "samples": []any{0.25},
			"values": []any{nil, 0.25}, "alignedFrom": 1.0, "alignedTo": 2.0,
		}},
		"allPods": 5.0, "sum": []any{1.0, 2.0}, "load": []any{1.0, 1.5}, "clipped": []any{false, true},
		"level": 2.4, "trendPerSecond": 0.1, "total": 3.6, "planned": 3.8, "capacity": 4.2,
		"desired": 6.0, "droppedSamples": 3.0,
	}, got.Forecast)

	code, body = get(t, h, MetricsPath+"/shop/none/trace")
	assert.Equal(t, http.StatusNotFound, code)
	assert.Equal(t, "There is no PredictedMetric shop/none.\n", body)
}

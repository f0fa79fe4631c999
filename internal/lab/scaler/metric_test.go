package scaler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pod that is busy all the time tells no more than that; the requests that reach it tell by how
// much they are too many.
func TestRequestsShowOverloadBeyondSaturation(t *testing.T) {
	const now = 400_000
	full := steady(now, 1, 1, 1, 1)
	for _, p := range full.Pods {
		for at := int64(0); at < now; at += 1000 {
			p.Requests.Add(at, 250) // two seconds of work
		}
	}
	s := testSetup(ramp(1, 1, 0, 1))
	s.Min, s.Behavior = 1, RecommendedBehavior()
	for _, name := range []string{"foresail-total", "foresail-load"} {
		s.Metric = Requests
		assert.Equal(t, need(1000), decideWith(t, name, s, full), "%s: 12 pods for 8 pods' work", name)
		s.Metric = Both
		assert.Equal(t, need(1000), decideWith(t, name, s, full), "%s: the larger of both", name)
		s.Metric = Utilization
		assert.Less(t, decideWith(t, name, s, full), need(1000), name)

		quiet := steady(now, 0.9, 0.9, 0.9, 0.9) // busy with something else than requests
		assert.Equal(t, 6, decideWith(t, name, s, quiet), name)
		s.Metric = Both
		assert.Equal(t, 6, decideWith(t, name, s, quiet), "%s: the larger of both", name)
		s.Metric = Requests
		assert.Equal(t, 4, decideWith(t, name, s, quiet), "%s: nothing to do, for which it does not scale down at once",
			name)
	}
}

func TestRequestsNeedTheirCost(t *testing.T) {
	s := testSetup(ramp(1, 1, 0, 1))
	s.Metric, s.Cost = Requests, 0
	_, err := New("foresail-total", s)
	require.ErrorContains(t, err, "foresail-total: cost: 0: must be above 0 where requests are read")
	s.Cost, s.Metric = testCost, Both+1
	_, err = New("foresail-total", s)
	require.ErrorContains(t, err, "metric: 3: must be Utilization, Requests or Both")
}

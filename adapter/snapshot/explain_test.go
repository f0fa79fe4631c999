package snapshot

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/pipeline"
)

func TestExplain(t *testing.T) {
	const numbers = ": 0.5 a pod now, 0.8 in 45s with 4 replicas, threshold 0.7"
	for reason, c := range map[pipeline.Reason]struct {
		wanted int
		want   string
	}{
		pipeline.AboveThreshold:  {6, "6 replicas instead of 4, the predicted load is above the threshold"},
		pipeline.TrendRising:     {4, "4 replicas are enough although the load is rising steeply"},
		pipeline.Headroom:        {2, "2 replicas instead of 4 do"},
		pipeline.BelowMinimum:    {5, "5 replicas instead of 4, the minimum"},
		pipeline.AtMaximum:       {4, "4 replicas, the maximum, although the predicted load needs more"},
		pipeline.NoNeed:          {4, "4 replicas fit"},
		pipeline.ScaleUpPending:  {4, "4 replicas kept, not all of them have started"},
		pipeline.StillOverloaded: {4, "4 replicas kept, the load is falling but still above the threshold"},
		pipeline.CoolingDown:     {4, "4 replicas kept until a cooldown has passed"},
	} {
		s := Snapshot{
			Threshold: 0.7,
			Forecast:  pipeline.Forecast{LoadNow: 0.5, LoadPredicted: 0.8, Horizon: 45 * time.Second, Target: 4},
			Decision:  pipeline.Decision{Wanted: c.wanted, Reason: reason},
		}
		assert.Equal(t, c.want+numbers, s.Explain(), reason)
	}
	s := Snapshot{Decision: pipeline.Decision{Wanted: 6, Reason: pipeline.TrendRising}}
	assert.True(t, strings.HasPrefix(s.Explain(), "6 replicas instead of 0, the load is rising steeply"))
	s.Err = &Unavailable{Reason: Stale, Message: "too old"}
	assert.Equal(t, "too old", s.Explain())
}

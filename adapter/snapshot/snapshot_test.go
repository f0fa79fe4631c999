package snapshot

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

func TestExplain(t *testing.T) {
	const numbers = ": 0.5 a pod now, 0.8 in 45s with 4 replicas, threshold 0.7"
	for reason, c := range map[pipeline.Reason]struct {
		desired int
		want    string
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
			Decision:  pipeline.Decision{Desired: c.desired, Reason: reason},
		}
		assert.Equal(t, c.want+numbers, s.Explain(), reason)
	}
	s := Snapshot{Decision: pipeline.Decision{Desired: 6, Reason: pipeline.BelowMinimum}, ActiveSchedules: []string{"black-friday", "office-hours"}}
	assert.Contains(t, s.Explain(), "6 replicas instead of 0, the minimum: ")
	assert.Contains(t, s.Explain(), ", threshold 0; schedules: black-friday, office-hours")
	s = Snapshot{Decision: pipeline.Decision{Desired: 6, Reason: pipeline.TrendRising}}
	assert.True(t, strings.HasPrefix(s.Explain(), "6 replicas instead of 0, the load is rising steeply"))
	s.Whole, s.Threshold, s.Forecast = true, 50, pipeline.Forecast{Level: 12, Total: 130, Horizon: 40 * time.Second}
	s.Decision = pipeline.Decision{Desired: 3, Reason: pipeline.Activated}
	assert.Equal(t, "3 replicas instead of none, the predicted load is above the activation: 12 altogether now, 130 in 40s, 0 replicas, threshold 50 a pod", s.Explain())
	s.Decision = pipeline.Decision{Reason: pipeline.Idle}
	assert.Contains(t, s.Explain(), "no replicas, the predicted load is not above")
	s.Forecast.Target = 2
	assert.Contains(t, s.Explain(), "no replicas instead of 2, the predicted load is not above")
	s.Err = &Unavailable{Reason: Stale, Message: "too old"}
	assert.Equal(t, "too old", s.Explain())
	s.Err, s.Whole, s.Decision = nil, false, pipeline.Decision{}
	s.Threshold, s.Forecast = 0.7, pipeline.Forecast{LoadNow: 3.91e-05, LoadPredicted: 0.12345}
	assert.Contains(t, s.Explain(), ": 0 a pod now, 0.123 in", "values are rounded to what matters beside the threshold")
	s.Threshold, s.Forecast = 1500, pipeline.Forecast{LoadNow: 1234.56, LoadPredicted: 12345678}
	assert.Contains(t, s.Explain(), ": 1235 a pod now, 12345678 in")
}

func TestCombine(t *testing.T) {
	desires := func(name string, desired int) *Snapshot {
		return &Snapshot{Metric: types.NamespacedName{Namespace: "shop", Name: name}, Decision: pipeline.Decision{Desired: desired}}
	}
	undecided := func(name string) *Snapshot {
		s := desires(name, 99)
		s.Err = &Unavailable{Reason: Stale}
		return s
	}
	for name, c := range map[string]struct {
		all  []*Snapshot
		want Combined
	}{
		"one":                          {[]*Snapshot{desires("elu", 3)}, Combined{Desired: 3, DrivenBy: "elu", Metrics: 1}},
		"the largest wins":             {[]*Snapshot{desires("elu", 6), desires("heap", 8), desires("rps", 2)}, Combined{Desired: 8, DrivenBy: "heap", Metrics: 3}},
		"the first by name of equals":  {[]*Snapshot{desires("heap", 6), desires("elu", 6)}, Combined{Desired: 6, DrivenBy: "elu", Metrics: 2}},
		"all down":                     {[]*Snapshot{desires("elu", 3), desires("heap", 4)}, Combined{Desired: 4, DrivenBy: "heap", Metrics: 2}},
		"one unknown holds":            {[]*Snapshot{desires("elu", 3), undecided("heap")}, Combined{Desired: 5, DrivenBy: "heap", Metrics: 2, Undecided: []string{"heap"}}},
		"one unknown does not hold up": {[]*Snapshot{desires("elu", 7), undecided("heap")}, Combined{Desired: 7, DrivenBy: "elu", Metrics: 2, Undecided: []string{"heap"}}},
		"none known":                   {[]*Snapshot{undecided("heap"), undecided("elu")}, Combined{Metrics: 2, Undecided: []string{"elu", "heap"}}},
	} {
		assert.Equal(t, c.want, Combine(c.all).Hold(5), name)
	}
}

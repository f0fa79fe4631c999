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
	// Loads of four pods with a threshold of 0.7.
	forecast := func(load, margin float64, basis pipeline.Basis, least, most float64) pipeline.Forecast {
		return pipeline.Forecast{
			Level: 2, Total: 2.5, LoadNow: 0.75, LoadPredicted: 0.625, Horizon: 45 * time.Second, Target: 4,
			Need: pipeline.Need{Load: load, Margin: margin, Basis: basis, PerInstance: 0.7, Min: least, Max: most},
		}
	}
	plain := func(load, margin float64, basis pipeline.Basis) pipeline.Forecast {
		return forecast(load, margin, basis, load/0.7, load/0.7)
	}
	for _, c := range []struct {
		reason   pipeline.Reason
		desired  int
		forecast pipeline.Forecast
		want     string
	}{
		{pipeline.AboveThreshold, 6, plain(3.6, 0.5, pipeline.FromForecast),
			"6 replicas instead of 4: planned load 3.6 (forecast 3.1 in 45s + margin 0.5) / threshold 0.7 = 5.14 replicas"},
		{pipeline.AboveThreshold, 6, plain(3.6, 0.5, pipeline.FromPresent),
			"6 replicas instead of 4: planned load 3.6 (load now 3.1 + margin 0.5) / threshold 0.7 = 5.14 replicas"},
		{pipeline.AboveThreshold, 6, plain(3.6, 0.5, pipeline.FromRecent),
			"6 replicas instead of 4: planned load 3.6 (load of the last 30s 3.1 + margin 0.5) / threshold 0.7 = 5.14 replicas"},
		{pipeline.AboveThreshold, 6, plain(3.6, 0.5, pipeline.FromTrend),
			"6 replicas instead of 4: planned load 3.6 (load, if its trend continues, 3.1 in 45s + margin 0.5) / threshold 0.7 = 5.14 replicas"},
		{pipeline.AboveThreshold, 6, plain(3.6, 0.5, pipeline.FromJump),
			"6 replicas instead of 4: planned load 3.6 (recurring jump to 3.1 within 45s + margin 0.5) / threshold 0.7 = 5.14 replicas"},
		{pipeline.AboveThreshold, 6, plain(3.6, 0, pipeline.FromForecast),
			"6 replicas instead of 4: forecast 3.6 in 45s / threshold 0.7 = 5.14 replicas"},
		{pipeline.AboveThreshold, 6, plain(3.6, 0, pipeline.FromDamped),
			"6 replicas instead of 4: planned load 3.6 (forecast 2.5 in 45s, its rise discounted by riskFactor) / threshold 0.7 = 5.14 replicas"},
		{pipeline.AboveThreshold, 5, plain(4.2, 0, pipeline.FromForecast),
			"5 replicas instead of 4: forecast 4.2 in 45s / threshold 0.7 = 6 replicas, limited by maxStep or maxReplicas"},
		{pipeline.AboveThreshold, 5, forecast(3.57, 0.5, pipeline.FromForecast, 5, 6),
			"5 replicas instead of 4: planned load 3.57 (forecast 3.07 in 45s + margin 0.5) / threshold 0.7 = 5.1 replicas, reduced to 5, as pods may be overfilled by the load of 0.1 replicas"},
		{pipeline.AboveThreshold, 9, plain(3.6, 0, pipeline.FromForecast),
			"9 replicas instead of 4: forecast 3.6 in 45s / threshold 0.7 = 5.14 replicas, fewer than the minimum"},
		{pipeline.TrendRising, 6, plain(3.6, 0, pipeline.FromForecast),
			"6 replicas instead of 4, the load is rising steeply: forecast 3.6 in 45s / threshold 0.7 = 5.14 replicas"},
		{pipeline.TrendRising, 4, plain(2, 0, pipeline.FromForecast),
			"4 replicas kept, the load is rising steeply: forecast 2 in 45s / threshold 0.7 = 2.86 replicas"},
		{pipeline.Headroom, 1, forecast(0.5, 0.1, pipeline.FromForecast, 0.61, 0.85),
			"1 replica instead of 4: planned load 0.5 (forecast 0.4 in 45s + margin 0.1) / threshold 0.7 = 0.71 replicas"},
		{pipeline.Headroom, 3, forecast(1.3, 0, pipeline.FromPresent, 1.86, 2.41),
			"3 replicas instead of 4: load now 1.3 / threshold 0.7 = 1.86 replicas, with the margin for scaling down 2.41"},
		{pipeline.Headroom, 3, plain(1.3, 0, pipeline.FromPresent),
			"3 replicas instead of 4: load now 1.3 / threshold 0.7 = 1.86 replicas, fewer than the minimum"},
		{pipeline.Headroom, 4, plain(1.3, 0, pipeline.FromPresent),
			"4 replicas kept, the minimum: load now 1.3 / threshold 0.7 = 1.86 replicas"},
		{pipeline.BelowMinimum, 5, plain(1.3, 0, pipeline.FromPresent),
			"5 replicas instead of 4, the minimum: load now 1.3 / threshold 0.7 = 1.86 replicas"},
		{pipeline.AtMaximum, 4, plain(3.6, 0, pipeline.FromForecast),
			"4 replicas kept, the maximum, although more are needed: forecast 3.6 in 45s / threshold 0.7 = 5.14 replicas"},
		{pipeline.AtMaximum, 5, plain(4.2, 0, pipeline.FromForecast),
			"5 replicas instead of 4, the maximum, although more are needed: forecast 4.2 in 45s / threshold 0.7 = 6 replicas"},
		{pipeline.AtMaximum, 3, plain(1.3, 0, pipeline.FromForecast),
			"3 replicas instead of 4, the maximum: forecast 1.3 in 45s / threshold 0.7 = 1.86 replicas"},
		{pipeline.NoNeed, 4, plain(2.5, 0, pipeline.FromForecast),
			"4 replicas fit: forecast 2.5 in 45s / threshold 0.7 = 3.57 replicas"},
		{pipeline.NoNeed, 4, forecast(2.85, 0.35, pipeline.FromForecast, 3.97, 4.4),
			"4 replicas fit: planned load 2.85 (forecast 2.5 in 45s + margin 0.35) / threshold 0.7 = 4.07 replicas, reduced to 4, as pods may be overfilled by the load of 0.1 replicas"},
		{pipeline.NoNeed, 4, forecast(2, 0, pipeline.FromForecast, 2.76, 3.1),
			"4 replicas fit: forecast 2 in 45s / threshold 0.7 = 2.86 replicas, with the margin for scaling down 3.1"},
		{pipeline.ScaleUpPending, 4, plain(1.3, 0, pipeline.FromForecast),
			"4 replicas kept, not all of them have started: forecast 1.3 in 45s / threshold 0.7 = 1.86 replicas"},
		{pipeline.StillOverloaded, 4, plain(1.3, 0, pipeline.FromForecast),
			"4 replicas kept, the load is falling but still above the threshold: 0.75 a pod now, 0.625 in 45s, threshold 0.7"},
		{pipeline.CoolingDown, 4, plain(1.3, 0, pipeline.FromForecast),
			"4 replicas kept until a cooldown has passed: forecast 1.3 in 45s / threshold 0.7 = 1.86 replicas"},
	} {
		s := Snapshot{Threshold: 0.7, Forecast: c.forecast,
			Decision: pipeline.Decision{Desired: c.desired, Reason: c.reason}}
		assert.Equal(t, c.want, s.Explain())
	}

	s := Snapshot{Threshold: 0.7, Forecast: plain(1.3, 0, pipeline.FromForecast),
		Decision: pipeline.Decision{Desired: 6, Reason: pipeline.BelowMinimum}}
	s.ActiveSchedules = []string{"black-friday", "office-hours"}
	assert.Contains(t, s.Explain(), "= 1.86 replicas; schedules: black-friday, office-hours")

	s = Snapshot{Threshold: 0.7, Forecast: plain(0.7, 0, pipeline.FromForecast),
		Decision: pipeline.Decision{Desired: 1, Reason: pipeline.NoNeed}}
	s.Forecast.Target = 1
	assert.Equal(t, "1 replica fits: forecast 0.7 in 45s / threshold 0.7 = 1 replica", s.Explain())

	s = Snapshot{Threshold: 50, Activation: 20,
		Forecast: pipeline.Forecast{Level: 12, Total: 130, Horizon: 40 * time.Second,
			Need: pipeline.Need{Load: 130, PerInstance: 50, Min: 2.5, Max: 2.7}}}
	s.Decision = pipeline.Decision{Desired: 3, Reason: pipeline.Activated}
	assert.Equal(
		t, "3 replicas instead of none, the load is above the activation: forecast 130 in 40s / threshold 50 = 2.6 replicas",
		s.Explain())
	s.Forecast.Total, s.Decision = 15, pipeline.Decision{Reason: pipeline.Idle}
	assert.Equal(t, "no replicas, the load is not above the activation: load now 12, forecast 15 in 40s, activation 20",
		s.Explain())
	s.Forecast.Target = 2
	assert.Contains(t, s.Explain(), "no replicas instead of 2, the load is not above the activation: ")
	s.Err = &Unavailable{Reason: Stale, Message: "too old"}
	assert.Equal(t, "too old", s.Explain())
}

// Values are rounded to what matters next to the threshold, such that what is shown adds up, and
// that no rounding hides a replica.
func TestExplainRoundsWithoutContradiction(t *testing.T) {
	of := func(threshold float64, n pipeline.Need) string {
		s := Snapshot{Threshold: threshold, Forecast: pipeline.Forecast{Target: 1, Need: n},
			Decision: pipeline.Decision{Desired: 2, Reason: pipeline.AboveThreshold}}
		return strings.TrimPrefix(s.Explain(), "2 replicas instead of 1: ")
	}
	assert.Contains(t, of(0.7, pipeline.Need{Load: 1.2348, Margin: 0.3337, PerInstance: 0.7}),
		"planned load 1.235 (forecast 0.901 in 0s + margin 0.334) / threshold 0.7 = 1.76 replicas")
	assert.Contains(t, of(1500, pipeline.Need{Load: 2234.56, PerInstance: 1500}),
		"forecast 2235 in 0s / threshold 1500 = 1.49")
	assert.Contains(t, of(1<<31, pipeline.Need{Load: 3 << 30, PerInstance: 1 << 31}),
		"forecast 3221230000 in 0s / threshold 2147480000 = 1.5")
	assert.Contains(t, of(0.7, pipeline.Need{Load: 1.4002, PerInstance: 0.7}),
		"forecast 1.4 in 0s / threshold 0.7 = 2.0003 replicas")
	assert.Contains(t, of(50, pipeline.Need{Load: 0.01, PerInstance: 50}), "= 0.0002 replicas")
	assert.Contains(t, of(0.8, pipeline.Need{Load: 1.2, Margin: 0.2, PerInstance: 0.64}),
		"/ 0.64 of a pod at threshold 0.8 = 1.88 replicas", "with the quadratic model")
}

func TestCombine(t *testing.T) {
	desires := func(name string, desired int) *Snapshot {
		return &Snapshot{Metric: types.NamespacedName{Namespace: "shop", Name: name},
			Decision: pipeline.Decision{Desired: desired}}
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
		"one": {[]*Snapshot{desires("elu", 3)}, Combined{Desired: 3, DrivenBy: "elu", Metrics: 1}},
		"the largest wins": {[]*Snapshot{desires("elu", 6), desires("heap", 8), desires("rps", 2)},
			Combined{Desired: 8, DrivenBy: "heap", Metrics: 3}},
		"the first by name of equals": {[]*Snapshot{desires("heap", 6), desires("elu", 6)},
			Combined{Desired: 6, DrivenBy: "elu", Metrics: 2}},
		"all down": {[]*Snapshot{desires("elu", 3), desires("heap", 4)},
			Combined{Desired: 4, DrivenBy: "heap", Metrics: 2}},
		"one unknown holds": {[]*Snapshot{desires("elu", 3), undecided("heap")},
			Combined{Desired: 5, DrivenBy: "heap", Metrics: 2, Undecided: []string{"heap"}}},
		"one unknown does not hold up": {[]*Snapshot{desires("elu", 7), undecided("heap")},
			Combined{Desired: 7, DrivenBy: "elu", Metrics: 2, Undecided: []string{"heap"}}},
		"none known": {[]*Snapshot{undecided("heap"), undecided("elu")},
			Combined{Metrics: 2, Undecided: []string{"elu", "heap"}}},
	} {
		assert.Equal(t, c.want, Combine(c.all).Hold(5), name)
	}
}

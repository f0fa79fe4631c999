package compare

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/golden"
	"github.com/foresail/foresail/internal/lab/report"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/pipeline"
)

// growing is a load that is steady for half a minute and then grows for as long as a pod takes to
// start thrice over.
func growing() Profile {
	return Profile{Name: "growing", Draw: func(uint64) (workload.Profile, error) {
		load := rateOf(func(t int64) float64 { return 100 + 1.5*float64(max(0, t-30_000))/1000 })
		return workload.Profile{Name: "growing", Load: load,
			Span: lab.Span{Lead: 30 * time.Second, Length: 75 * time.Second}}, nil
	}}
}

type rateOf func(t int64) float64

func (r rateOf) Rate(t int64) float64 { return r(t) }

func TestAblationsArePlayed(t *testing.T) {
	c := tiny()
	c.Profiles, c.Seeds, c.Setup.Min = []Profile{growing()}, c.Seeds[:1], 2
	done := 0
	all, err := PlayAblations(t.Context(), c, false, func(Run) { done++ })
	require.NoError(t, err)
	assert.Equal(t, AblationRuns(c, false), done)
	var names []string
	for _, l := range all {
		names = append(names, l.Name)
		require.Len(t, l.Result.Outcomes, 1, l.Name)
		scalers := l.Result.Outcomes[0].Scalers
		// All but the last ablation begin with what a comparison has without any.
		assert.Equal(t, all[0].Result.Outcomes[0].Scalers[0].Runs[0].Figures, scalers[0].Runs[0].Figures, l.Name)
		differ := 0
		for _, s := range scalers[1:] {
			if s.Runs[0].Figures != scalers[0].Runs[0].Figures {
				differ++
			}
		}
		assert.Positive(t, differ, "%s: nothing that is changed matters", l.Name)
	}
	assert.Equal(t, []string{"freshness", "delay", "behavior", "metric", "method"}, names)

	c.Scalers = []string{through}
	plain, err := Play(t.Context(), c, nil)
	require.NoError(t, err)
	assert.Equal(t, plain.Outcomes[0].Scalers[0].Runs[0].Figures, all[0].Result.Outcomes[0].Scalers[0].Runs[0].Figures)

	written := func(ablations []Ablation) map[string]string {
		var out report.Report
		reportAblations(&out, ablations)
		return saved(t, &out)
	}
	again, err := PlayAblations(t.Context(), c, false, nil)
	require.NoError(t, err)
	assert.Equal(t, written(all), written(again), "the same for the same seeds")
}

func TestAblationsCanBeStopped(t *testing.T) {
	c := tiny()
	c.Profiles, c.Seeds = c.Profiles[:1], c.Seeds[:1]
	ctx, cancel := context.WithCancel(t.Context())
	done, first := 0, len(freshness())
	all, err := PlayAblations(ctx, c, false, func(Run) {
		if done++; done == first+1 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, all, 1, "finished ones are returned")
	assert.Equal(t, "freshness", all[0].Name)
}

func TestAblationsPlayFurtherProfilesWhereTheyMatter(t *testing.T) {
	c := tiny()
	c.Profiles = []Profile{NamedProfile("ramp"), NamedProfile("spike")}
	profiles := map[string][]string{}
	for _, l := range ablations() {
		for _, p := range l.config(c, true).Profiles {
			profiles[l.name] = append(profiles[l.name], p.Name)
		}
		assert.Len(t, l.config(c, false).Profiles, 2, l.name)
	}
	assert.Equal(t, []string{"ramp", "spike"}, profiles["freshness"])
	assert.Equal(t, []string{"ramp", "spike", "sine", "bursts", "falling"}, profiles["behavior"])
	assert.Equal(t, workload.Names(), profiles["method"])
	assert.Len(t, c.Profiles, 2, "the comparison's own are left alone")
}

func TestVariantsChangeWhatTheirNamesSay(t *testing.T) {
	setup := func(ablation, name string) scaler.Setup {
		s := tiny().Setup
		s.Seed, s.Behavior = 3, scaler.RecommendedBehavior()
		for _, l := range ablations() {
			for _, v := range l.variants {
				if l.name == ablation && v.name == name {
					if v.change != nil {
						v.change(&s)
					}
					return s
				}
			}
		}
		require.Fail(t, "there is no such variant", "%s: %s", ablation, name)
		return s
	}
	batches := setup("freshness", "each second, sent every 15s").Sources.Foresail
	assert.Equal(t, lab.Source{Window: time.Second, Period: time.Second, Lag: time.Second, Batch: 15 * time.Second,
		BatchPhase: batches.BatchPhase}, batches)
	late := setup("freshness", "mean of 30s, seen 15s later")
	gauge := late.Sources.Foresail
	assert.Equal(t, lab.Source{Window: 30 * time.Second, Period: 30 * time.Second, Lag: 15 * time.Second,
		Phase: gauge.Phase}, gauge)
	assert.Equal(t, 105*time.Second, late.Params.StaleAfter, "its readings are not stale")
	assert.Equal(t, 30*time.Second, setup("freshness", "mean of 5s").Params.StaleAfter)
	phases := map[time.Duration]bool{}
	for seed := range uint64(100) {
		p := phaseOf(seed, "x", 30*time.Second)
		require.True(t, p >= 0 && p < 30*time.Second, p)
		phases[p] = true
	}
	assert.Greater(t, len(phases), 20)

	for _, d := range []time.Duration{0, 5 * time.Second, 30 * time.Second} {
		assert.Equal(t, d, setup("delay", fmt.Sprint(d)).Params.ReactionDelay)
	}
	assert.Nil(t, setup("behavior", "HPA's defaults").Behavior)
	exact := setup("behavior", "scaleUp tolerance 0").Behavior
	assert.True(t, exact.ScaleUp.Tolerance.IsZero())
	assert.Nil(t, exact.ScaleUp.Policies)
	assert.Nil(t, exact.ScaleDown)
	fast := setup("behavior", "and up by 400%").Behavior
	assert.Equal(t, scaler.RecommendedBehavior().ScaleUp, fast.ScaleUp)
	assert.Nil(t, fast.ScaleDown)
	assert.EqualValues(t, 120, *setup("behavior", "and down after 120s").Behavior.ScaleDown.StabilizationWindowSeconds)
	assert.EqualValues(t, 30, *setup("behavior",
		"recommended, down after 30s").Behavior.ScaleDown.StabilizationWindowSeconds)
	assert.Equal(t, scaler.Both, setup("metric", "both").Metric)
	assert.Equal(t, scaler.Requests, setup("metric", "requests").Metric)
	assert.Equal(t, pipeline.Adaptive, setup("method", "Adaptive").Params.Method)
	holt := setup("method", "Holt").Params
	holt.StartupTime = scaler.PaperParams().StartupTime
	assert.Equal(t, pipeline.Holt, holt.Method)
	assert.Equal(t, scaler.PaperParams(), holt)
}

func TestTableOfAblations(t *testing.T) {
	r := byHand()
	r.Outcomes[0].Scalers[0].Name, r.Outcomes[0].Scalers[1].Name = "15s", "0s"
	all := []Ablation{{Name: "delay", Title: "how long before the HPA reads a forecast", Result: r}}
	var out report.Report
	reportAblations(&out, all)
	golden.Equal(t, "ablations.txt", printed(t, &out))
	lines := rows(t, saved(t, &out)["ablations.csv"])
	require.Len(t, lines, 2)
	assert.Equal(t, "15s", lines[1]["reference"])
	assert.Equal(t, "0s", lines[1]["variant"])
	assert.Equal(t, "0.991667", lines[1]["success"])
	assert.Equal(t, "0.041667", lines[1]["success_minus_reference"])
	assert.NotEmpty(t, lines[1]["success_minus_reference_half"])
	assert.Empty(t, lines[0]["success_minus_reference"])
	assert.Equal(t, "1.5000", lines[1]["above_threshold_minutes"])

	r.Outcomes[0].Seeds = r.Outcomes[0].Seeds[:1]
	for i := range r.Outcomes[0].Scalers {
		r.Outcomes[0].Scalers[i].Runs = r.Outcomes[0].Scalers[i].Runs[:1]
	}
	out = report.Report{}
	reportAblations(&out, all)
	assert.Contains(t, printed(t, &out), `(1 seed; difference from "15s")`)
}

package compare

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/golden"
	"github.com/foresail/foresail/internal/lab/report"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/internal/lab/world/queue"
	"github.com/foresail/foresail/internal/lab/world/workload"
)

type steady float64

func (s steady) Rate(int64) float64 { return float64(s) }

// tiny is half a minute of two profiles, for three scalers and two seeds.
func tiny() Config {
	profile := func(name string, rate steady) Profile {
		return Profile{Name: name, Draw: func(uint64) (workload.Profile, error) {
			return workload.Profile{Name: name, Load: rate,
				Span: lab.Span{Lead: 5 * time.Second, Length: 25 * time.Second}}, nil
		}}
	}
	return Config{
		Profiles: []Profile{profile("calm", 100), profile("rough", 700)},
		Scalers:  []string{"keda", "foresail-total", "foresail-total/hpa-defaults", "clairvoyant"},
		Seeds:    []uint64{7, 8}, Model: queue.Defaults(),
		Setup: scaler.Setup{
			Threshold: 0.7, Min: 4, Max: 20, Startup: 19 * time.Second,
			Params: scaler.RecommendedParams(), Paper: scaler.PaperParams(),
		},
	}
}

// saved are the files of a report but for PNGs, by name, and what it prints.
func saved(t *testing.T, r *report.Report) map[string]string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, r.Save(dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string]string{"text": printed(t, r)}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".png") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		all[e.Name()] = string(text)
	}
	return all
}

func printed(t *testing.T, r *report.Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WriteText(&b))
	return b.String()
}

// tables are all figures of a profile as they are printed.
func tables(t *testing.T, o Outcome) string {
	t.Helper()
	var out report.Report
	o.reportAll(&out)
	return printed(t, &out)
}

// files are all that is written of a comparison.
func files(t *testing.T, r *Result) map[string]string {
	t.Helper()
	out := (&Played{Result: r}).Report(true)
	r.Charts(out, 0.7, 20)
	return saved(t, out)
}

func TestARunIsAFunctionOfItsSeed(t *testing.T) {
	c := tiny()
	c.Profiles = c.Profiles[1:]
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, err := Play(t.Context(), c, nil)
	require.NoError(t, err)
	runtime.GOMAXPROCS(4)
	done := 0
	four, err := Play(t.Context(), c, func(Run) { done++ })
	require.NoError(t, err)
	assert.Equal(t, 8, done)
	want, got := files(t, one), files(t, four)
	require.Len(t, want, 4+4)
	for name := range want {
		assert.True(t, want[name] == got[name], "%s differs", name)
	}
}

func TestFilesHaveALineForEachScaler(t *testing.T) {
	r, err := Play(t.Context(), tiny(), nil)
	require.NoError(t, err)
	all := saved(t, (&Played{Result: r}).Report(true))
	assert.Equal(t, "profile,scaler,seeds,success,mean_ms,p50_ms,p90_ms,p99_ms,errors,pod_seconds,under_s,over_s,actions,reversals",
		strings.SplitN(all["summary.csv"], "\n", 2)[0])

	summary, intervals, seeds := rows(t, all["summary.csv"]), rows(t, all["intervals.csv"]), rows(t, all["seeds.csv"])
	require.Len(t, summary, 8)
	require.Len(t, intervals, 8)
	require.Len(t, seeds, 16)
	for i, row := range summary {
		assert.Equal(t, []string{"calm", "rough"}[i/4], row["profile"])
		assert.Equal(t, tiny().Scalers[i%4], row["scaler"])
		assert.Equal(t, "2", row["seeds"])
		for _, f := range score.Summary() {
			assert.Equal(t, row[f.Name], intervals[i][f.Name], f.Name)
		}
		for _, name := range []string{"success_half", "dropped", "above_threshold_minutes", "short_pods"} {
			assert.NotEmpty(t, intervals[i][name], name)
		}
		// keda is not compared with itself.
		assert.Equal(t, row["scaler"] == Rival, intervals[i]["success_minus_keda"] == "")
	}
	assert.Equal(t, "1.000000", summary[0]["success"], "100 requests a second are no work for four pods")
	assert.Equal(t, "100.00", summary[0]["pod_seconds"])
	assert.Less(t, summary[4]["success"], "0.9", "700 are too much")
	assert.Equal(t, "8", seeds[1]["seed"])
	assert.Equal(t, "keda", seeds[1]["scaler"])

	for i, run := range r.Outcomes[1].Scalers[0].Runs {
		f := run.Figures
		assert.InDelta(t, 1-f.Errors/f.Sent, f.Success, 1e-12, "success is of those sent")
		row := seeds[8+i]
		assert.Equal(t, fmt.Sprintf("%.2f", f.Dropped), row["dropped"])
		assert.Positive(t, f.Dropped)
		assert.InDelta(t, 700*25, f.Sent+f.Dropped, 2)
	}
}

func rows(t *testing.T, text string) []map[string]string {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	var out []map[string]string
	for _, row := range all[1:] {
		of := map[string]string{}
		for i, name := range all[0] {
			of[name] = row[i]
		}
		require.Len(t, of, len(all[0]), "two columns have one name")
		out = append(out, of)
	}
	return out
}

func TestSeriesFollowARun(t *testing.T) {
	c := tiny()
	c.Scalers, c.Seeds = []string{"keda"}, []uint64{1}
	r, err := Play(t.Context(), c, nil)
	require.NoError(t, err)
	calm, rough := r.Outcomes[0].Scalers[0].Runs[0].Series, r.Outcomes[1].Scalers[0].Runs[0].Series
	assert.Equal(t, time.Second, calm.Step)
	for _, series := range [][]float64{calm.Rate, calm.Utilization, calm.Ready, calm.Pods, calm.Median, calm.P90,
		calm.Lost} {
		assert.Len(t, series, 25)
	}
	assert.InDelta(t, 100*8e-3/4, meanOf(calm.Utilization), 0.05)
	assert.InDelta(t, 100, meanOf(calm.Rate), 1)
	assert.Zero(t, meanOf(calm.Lost))
	assert.Greater(t, meanOf(rough.Utilization), 0.8)
	assert.Greater(t, meanOf(rough.Lost), 0.1)
	require.Len(t, rough.Answered, len(Latencies()))
	f := r.Outcomes[1].Scalers[0].Runs[0].Figures
	assert.InDelta(t, f.Success*f.Sent/(f.Sent+f.Dropped), rough.Answered[len(rough.Answered)-1], 1e-9,
		"clients wait no longer than ten seconds")
	assert.IsNonDecreasing(t, rough.Answered)
	assert.Equal(t, []float64{1.5, 3, 9}, thin([]float64{1, 2, 3, math.NaN(), 9}, 2))
	assert.Equal(t, 10, Latencies()[0])
	assert.Equal(t, 10_000, Latencies()[len(Latencies())-1])
}

func TestAComparisonCanBeStopped(t *testing.T) {
	c := tiny()
	draw, forever := c.Profiles[0].Draw, make(chan struct{})
	defer close(forever)
	c.Profiles[0].Draw = func(seed uint64) (workload.Profile, error) {
		if seed == 8 {
			<-forever
		}
		return draw(seed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	r, err := Play(ctx, c, func(Run) {
		if done++; done == 4 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, r.Outcomes, 1)
	assert.Equal(t, []uint64{7}, r.Outcomes[0].Seeds)
	for _, s := range r.Outcomes[0].Scalers {
		assert.Len(t, s.Runs, 1, s.Name)
	}

	r, err = Play(ctx, tiny(), nil)
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, r.Outcomes)
}

func TestCheckRejectsUnusableSettings(t *testing.T) {
	require.NoError(t, tiny().Check())
	c := tiny()
	c.Setup.Threshold = 1.5
	assert.ErrorContains(t, c.Check(), "threshold: 1.5")
	c = tiny()
	c.Scalers = []string{"keda/hpa-defaults"}
	assert.ErrorContains(t, c.Check(),
		`scaler: "keda/hpa-defaults": must be one of hpa-cpu, keda, paper, foresail-total, foresail-load,`)
	_, err := Play(t.Context(), c, nil)
	assert.ErrorContains(t, err, "keda/hpa-defaults")
}

// byHand is a result of two scalers that nothing was played for.
func byHand() *Result {
	run := func(scaler string, seed uint64, success, mean, pods float64) Run {
		return Run{Profile: "ramp", Scaler: scaler, Seed: seed, Figures: score.Figures{
			Requests: score.Requests{Sent: 1000, Errors: 1000 * (1 - success), Dropped: 5, Success: success, Mean: mean,
				P50: mean / 2, P90: 3 * mean, P99: 10 * mean},
			Pods: score.Pods{Length: 100, Seconds: pods, UnderSeconds: 60, MissingSeconds: 125, OverSeconds: 5,
				SpareSeconds: 10, AboveThresholdMinutes: 1.5, SaturatedMinutes: 0.5, Actions: 6, Reversals: 1},
		}}
	}
	return &Result{Outcomes: []Outcome{{
		Profile: "ramp", Seeds: []uint64{1, 2, 3},
		Scalers: []ScalerRuns{
			{"keda", []Run{run("keda", 1, 0.95, 1000, 1500), run("keda", 2, 0.94, 1100, 1600),
				run("keda", 3, 0.96, 900, 1550)}},
			{"paper", []Run{run("paper", 1, 0.99, 160, 1500), run("paper", 2, 0.985, 180, 1650),
				run("paper", 3, 1, 140, 1500)}},
		},
	}}}
}

func TestTable(t *testing.T) {
	golden.Equal(t, "table.txt", printed(t, (&Played{Result: byHand()}).Report(true)))
	one := byHand()
	one.Outcomes[0].Seeds = one.Outcomes[0].Seeds[:1]
	for i := range one.Outcomes[0].Scalers {
		one.Outcomes[0].Scalers[i].Runs = one.Outcomes[0].Scalers[i].Runs[:1]
	}
	golden.Equal(t, "one-seed.txt", tables(t, one.Outcomes[0]))
}

func TestOverviewEndsWithAConclusion(t *testing.T) {
	text := func(r *Result) string { return printed(t, (&Played{Result: r}).Report(false)) }
	assert.NotContains(t, text(byHand()), "Conclusion", "without foresail-total")

	r := byHand()
	s := r.Outcomes[0].Scalers
	s[1].Name = through
	bound := ScalerRuns{Bound, slices.Clone(s[1].Runs)}
	for i := range bound.Runs {
		bound.Runs[i].Figures.Success -= 0.01
	}
	r.Outcomes[0].Scalers = append(s, bound)
	golden.Equal(t, "overview.txt", text(r))

	r.Outcomes[0].Scalers[0].Runs = r.Outcomes[0].Scalers[1].Runs
	assert.Contains(t, text(r), "serves is the same on ramp for as many pod-seconds;")
}

func TestPodsAreAMultipleOfTheBound(t *testing.T) {
	o := byHand().Outcomes[0]
	assert.NotContains(t, tables(t, o), "TIMES", "without the bound")
	bound := ScalerRuns{Bound, slices.Clone(o.Scalers[0].Runs)}
	for i := range bound.Runs {
		bound.Runs[i].Figures.Seconds *= 0.8
	}
	o.Scalers = append(o.Scalers, bound)
	text := tables(t, o)
	assert.Regexp(t, `SCALER +POD-SECONDS +TIMES clairvoyant's +UNDER s`, text)
	assert.Regexp(t, `keda +1550 ±124 +1.250 ±0.000 `, text)
	assert.Regexp(t, `clairvoyant +1240 ±99 +1.000 ±0.000 `, text)
}

func TestCalibrationIsOfTheProfilesOfThePaper(t *testing.T) {
	r := byHand()
	r.Outcomes[0].Profile = "sine"
	assert.NotContains(t, printed(t, (&Played{Result: r}).Report(true)), "calibration")
}

func TestVariantsReportReversedFindings(t *testing.T) {
	other := byHand()
	s := other.Outcomes[0].Scalers
	s[0].Runs, s[1].Runs = s[1].Runs, s[0].Runs
	variants := []Variant{{"fitted", byHand()}, {"same", byHand()}, {"other", other}}
	var out report.Report
	reportVariants(&out, variants)
	golden.Equal(t, "variants.txt", printed(t, &out))
	all := rows(t, saved(t, &out)["variants.csv"])
	require.Len(t, all, 6)
	assert.Equal(t, map[string]string{
		"profile": "ramp", "scaler": "keda", "model": "other", "seeds": "3", "success": "0.991667",
		"success_half": "0.018973", "place": "1",
	}, all[2])
}

func TestVariantsArePlayed(t *testing.T) {
	c := tiny()
	c.Profiles, c.Scalers, c.Seeds = c.Profiles[1:], []string{"keda"}, c.Seeds[:1]
	fitted, err := Play(t.Context(), c, nil)
	require.NoError(t, err)
	done := 0
	variants, err := PlayVariants(t.Context(), c, fitted, func(Run) { done++ })
	require.NoError(t, err)
	assert.Equal(t, VariantRuns(c), done)
	require.Len(t, variants, 6)
	for _, v := range variants[1:] {
		assert.NotEqual(t, fitted.Outcomes[0].Scalers[0].Runs[0].Figures,
			v.Result.Outcomes[0].Scalers[0].Runs[0].Figures, v.Name)
	}

	ctx, cancel := context.WithCancel(t.Context())
	variants, err = PlayVariants(ctx, c, fitted, func(Run) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	assert.LessOrEqual(t, len(variants), 2)
}

func TestNumbersInTables(t *testing.T) {
	assert.Equal(t, "-1.5 ±0.2 *", interval(score.Interval{Mean: -1.5, Half: 0.2}, 1, true))
	assert.Equal(t, "+1.5 ±2.0", interval(score.Interval{Mean: 1.5, Half: 2}, 1, true))
	assert.Equal(t, "0 ±0", interval(score.Interval{Mean: -0.2, Half: 0.1}, 0, true), "neither signed nor marked")
	assert.Equal(t, "2.0", interval(score.Interval{Mean: 2, Half: math.NaN()}, 1, false))
	assert.Equal(t, "-", interval(score.Interval{Mean: math.NaN(), Half: math.NaN()}, 1, false))
}

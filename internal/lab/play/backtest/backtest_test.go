package backtest_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/play/backtest"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/internal/lab/world/fluid"
	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/pipeline"
)

var began = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// traceOf returns a trace with a value a minute.
func traceOf(t *testing.T, minutes int, rate func(minute int) float64) *workload.Trace {
	t.Helper()
	var points []workload.Point
	for i := range minutes + 1 {
		points = append(points, workload.Point{At: began.Add(time.Duration(i) * time.Minute), Rate: rate(i)})
	}
	trace, err := workload.NewTrace("waves", points)
	require.NoError(t, err)
	return trace
}

// waves go up and down between 100 and 700 requests/s within half an hour.
func waves(minute int) float64 { return 400 - 300*math.Cos(2*math.Pi*float64(minute)/30) }

func options(t *testing.T) *backtest.Options {
	return &backtest.Options{
		Trace: traceOf(t, 20, waves), Scalers: scaler.DefaultNames(), Threshold: 0.7, Min: 2, Max: 20, Capacity: 100,
		Startup: 25 * time.Second, Seeds: []uint64{1}, Metric: backtest.Utilization,
		Params: scaler.RecommendedParams(), Paper: scaler.PaperParams(), Behavior: scaler.RecommendedBehavior(),
		Targets: []float64{0.5, 0.7}, Advise: true,
	}
}

func files(t *testing.T, o *backtest.Options) map[string]string {
	t.Helper()
	r, err := backtest.Run(t.Context(), o)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "made")
	require.NoError(t, r.Report().Save(dir))
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		out[e.Name()] = string(text)
	}
	var text bytes.Buffer
	require.NoError(t, r.Report().WriteText(&text))
	out["text"] = text.String()
	return out
}

// Not even the order in which runs come to an end has a say in the outcome.
func TestIsAFunctionOfItsOptions(t *testing.T) {
	o := options(t)
	o.Trace, o.Seeds = traceOf(t, 10, waves), []uint64{1, 2}
	several := files(t, o)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	assert.Equal(t, several, files(t, o))
}

func TestFiles(t *testing.T) {
	o := options(t)
	o.Trace, o.Scalers, o.Advise = traceOf(t, 12, waves), scaler.AllNames(), false
	got := files(t, o)
	for _, name := range []string{"frontier.svg", "frontier.png", "timeline.svg", "timeline.png"} {
		assert.NotEmpty(t, got[name], name)
	}
	assert.True(t, strings.HasPrefix(got["summary.csv"],
		"trace,scaler,above_threshold_minutes,saturated_minutes,pod_hours,under_s,over_s,actions,reversals,mase,momentary_minutes,sudden_minutes\n"), got["summary.csv"])
	rows := table(t, got["summary.csv"])
	require.Len(t, rows, len(scaler.AllNames()))
	for i, name := range scaler.AllNames() {
		assert.Equal(t, []string{"waves", name}, rows[i][:2])
		assert.Equal(t, name == "paper" || strings.HasPrefix(name, "foresail-"), rows[i][9] != "",
			"%s: MASE is empty for scalers without a forecast", name)
		if name == "clairvoyant" {
			assert.Equal(t, "0.00", rows[i][2])
		}
	}
	frontier := table(t, got["frontier.csv"])
	targets := map[string][]string{}
	for _, row := range frontier {
		targets[row[1]] = append(targets[row[1]], row[2])
	}
	require.Len(t, targets, len(scaler.AllNames()))
	for name, of := range targets {
		want := []string{"0.500", "0.700"}
		if name == "keda" || name == "keda/same-behavior" {
			want = []string{"0.500", "0.550", "0.600", "0.650", "0.700"} // what others are compared with
		}
		assert.Equal(t, want, of, name)
	}
	assert.Equal(t, []string{"waves", "hpa-cpu", "0.500", "0.20"}, frontier[0][:4])
	assert.Equal(t, []string{"waves", "hpa-cpu", "0.700", "0.20"}, frontier[1][:4])
	assert.Equal(t, rows[0][2], frontier[1][4],
		"the frontier passes through the summary where all of the trace is played")
	assert.Empty(t, frontier[2][7], "keda is not compared with itself")
	for _, row := range table(t, got["forecast.csv"])[:1] {
		assert.Equal(t, "1.000", row[4], "naive")
	}
}

func table(t *testing.T, text string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	return rows[1:]
}

// The report is well-formed, asks for nothing from elsewhere, and has the figures of the tables.
func TestReport(t *testing.T) {
	o := options(t)
	o.Trace.Name = `<script>alert("x")</script>`
	got := files(t, o)
	report := got["report.html"]
	d := xml.NewDecoder(strings.NewReader(report))
	d.AutoClose, d.Entity = xml.HTMLAutoClose, xml.HTMLEntity
	elements := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
			for _, a := range e.Attr {
				assert.NotContains(t, []string{"src", "href"}, a.Name.Local, "%s", e.Name.Local)
			}
		}
	}
	assert.Equal(t, 2, elements["svg"])
	assert.Equal(t, 3, elements["table"], "of autoscalers, of settings, and of forecasts")
	assert.NotContains(t, report, "MASE")
	assert.Zero(t, elements["script"])
	assert.Zero(t, elements["link"])
	assert.NotContains(t, strings.ReplaceAll(report, "http://www.w3.org/", ""), "://")
	assert.NotContains(t, report, "url(")
	rows := cellsOf(report)
	for _, row := range table(t, got["summary.csv"]) {
		assert.Regexp(t, fmt.Sprintf(`(?m)^%s \d+\.\d \d+\.\d\d%% `, scaler.Title(row[1])), rows)
	}
	o.Advise, o.Targets = false, nil
	r, err := backtest.Run(t.Context(), o)
	require.NoError(t, err)
	for _, row := range r.Summary {
		assert.Contains(t, rows, fmt.Sprintf(" %.1f %.2f%% %.1f %.1f ",
			row.AboveThresholdMinutes, 100*row.AboveThresholdShare(), row.SaturatedMinutes, row.PodHours()))
	}
}

// cellsOf returns the rows of the tables of a page, a line each.
func cellsOf(html string) string {
	html = strings.ReplaceAll(html, "</td>", " ")
	return regexp.MustCompile(`<[^>]*>`).ReplaceAllString(html, "")
}

func TestSectionsCoverATraceOnce(t *testing.T) {
	for _, length := range []int64{600, 6 * 3600, 6*3600 + 1, 27 * 86_400, 12_347} {
		end := int64(100)
		for _, s := range backtest.Sections(100, 100+length) {
			assert.Equal(t, end, s[0])
			assert.LessOrEqual(t, s[1]-s[0], int64(6*3600)+1)
			end = s[1]
		}
		assert.Equal(t, 100+length, end)
	}
}

func TestSomeSectionsStandForALongTrace(t *testing.T) {
	const day = 86_400
	assert.Equal(t, backtest.Sections(0, day), backtest.Sample(0, day, 24*time.Hour, 1), "all of what is short enough")

	picked := backtest.Sample(0, 24*day, 24*time.Hour, 1)
	require.Len(t, picked, 24)
	hours := map[int64]bool{}
	for i, s := range picked {
		assert.EqualValues(t, 3600, s[1]-s[0])
		assert.Equal(t, int64(i), s[0]/day, "one of each day")
		hours[s[0]%day] = true
	}
	assert.Greater(t, len(hours), 8, "at different times of the day")
	assert.Equal(t, picked, backtest.Sample(0, 24*day, 24*time.Hour, 1))
	assert.NotEqual(t, picked, backtest.Sample(0, 24*day, 24*time.Hour, 2))
}

type climb struct{ from, each float64 } // requests per second, and more each second

func (c climb) Rate(t int64) float64 { return c.from + c.each*float64(t)/1000 }

// oracle forecasts what will come, and more.
type oracle struct {
	next   int64
	load   lab.Load
	over   float64
	reason pipeline.Reason
}

func (o *oracle) Next() int64 { return o.next }

func (o *oracle) Decide(v *lab.View) int {
	o.next += 1000
	return v.Target
}

func (o *oracle) Forecast() (pipeline.Forecast, bool) {
	now := o.next - 1000
	return pipeline.Forecast{Now: now, Horizon: 40 * time.Second, Total: o.load.Rate(now+40_000)/1000 + o.over,
		Decision: pipeline.Decision{Reason: o.reason}}, true
}

// On a steady climb of 0.01 pods a second, a look 40 s ahead that takes the load of the last second
// to stay is 0.41 pods off, as that second began a second ago; a straight line is off by that
// second.
func TestErrorsOfKnownSeries(t *testing.T) {
	load := climb{2000, 10}
	world := func() lab.World {
		return fluid.New(fluid.Config{Load: load, Exact: true, Seed: 1, Min: 10, Max: 10, Warm: 10, Capacity: 1000})
	}
	span := lab.Span{Lead: 2 * time.Minute, Length: 4 * time.Minute}
	e := backtest.Judge(&oracle{load: load, over: 0.082}, world(), load, 0, 1.0/1000, span)
	assert.Equal(t, 4*60-40-10+1, e.N,
		"what is forecast of the last ten seconds and later is not judged, as the rate is a mean around it")
	n := float64(e.N)
	assert.InDelta(t, 0.41, e.Ways[backtest.LastSecond].Way.Second/n, 1e-9)
	assert.InDelta(t, 0.41, e.Ways[backtest.LastSecond].Way.Rate/n, 1e-9,
		"on a straight line the rate is the load of the second")
	assert.InDelta(t, 0.41+0.07, e.Ways[backtest.LastQuarter].Way.Second/n, 1e-9,
		"the middle of a quarter of a minute is 7 s before the last second")
	assert.InDelta(t, 0.41+0.295, e.Ways[backtest.LastMinute].Way.Second/n, 1e-9)
	assert.InDelta(t, 0.01, e.Ways[backtest.StraightLine].Way.Second/n, 1e-9, "a second")
	assert.InDelta(t, 0.082, e.Forecast.Second/n, 1e-9)
	assert.InDelta(t, 0.2, e.MASE(), 1e-9)
	assert.InDelta(t, 0.2, e.Forecast.Rate/e.Ways[backtest.LastSecond].Way.Rate, 1e-9)
	assert.Equal(t, backtest.Orders{N: e.N, Late: e.N}, e.Orders, "nothing was ordered")
	assert.Zero(t, e.Learned, "six hours have not been seen")
	atMaximum := backtest.Judge(&oracle{load: load, reason: pipeline.AtMaximum}, world(), load, 0, 1.0/1000, span)
	assert.Equal(t, backtest.Orders{N: e.N}, atMaximum.Orders, "no more could be ordered")
	e = backtest.Judge(&oracle{load: load, over: 0.082}, world(), load, -(6*time.Hour - 3*time.Minute).Milliseconds(),
		1.0/1000, span)
	assert.Equal(t, 3*60-40-10+1, e.Learned.N, "the load begins six hours before the second of the four minutes")
	assert.Equal(t, 1.0, e.Learned.Lateness())
	assert.Zero(t, e.Ways[backtest.Yesterday].N, "the load does not go back that far")

	assert.True(t, math.IsNaN(backtest.Errors{}.MASE()), "not known")
	assert.InDelta(t, 7, backtest.Continued([]float64{1, 2, 3, 4}, 3), 1e-12)
}

// days is a load that is the same at the same time of each day, and so much more on each day than
// on the one before.
type days struct{ each float64 }

func (d days) Rate(t int64) float64 {
	const day = 24 * 3600 * 1000
	return (2000 + 1000*math.Sin(2*math.Pi*float64(t%600_000)/600_000)) * math.Pow(d.each, math.Floor(float64(t)/day))
}

// A time of another day has the shape, and now has the height.
func TestTheSameTimeOfAnotherDay(t *testing.T) {
	load := days{1.02}
	world := fluid.New(fluid.Config{Load: load, Exact: true, Seed: 1, Min: 10, Max: 10, Warm: 10, Capacity: 1000})
	e := backtest.Judge(&oracle{load: load}, world, load, -8*24*3600*1000, 1.0/1000,
		lab.Span{Lead: 2 * time.Minute, Length: 10 * time.Minute})
	for _, way := range []backtest.Way{backtest.Yesterday, backtest.LastWeek} {
		c := e.Ways[way]
		assert.Equal(t, e.N, c.N, way)
		assert.Less(t, c.Way.Rate, 0.05*e.Ways[backtest.LastSecond].Way.Rate, way)
		assert.Equal(t, e.Forecast, c.Ours, way)
	}
}

// A quantile that is passed for a hundredth of the time costs ninety-nine times as much below the
// load as above it. A trace is played in sections, which have to find what came before them.
func TestScalersKnowTheTraceBeforeTheirSection(t *testing.T) {
	const begin, day = 4 * 60, 24 * 60
	minutes := func(scaler string, second int) float64 {
		o := options(t)
		o.Scalers, o.Targets, o.Advise = []string{scaler}, nil, false
		o.Trace = traceOf(t, day+6*60, func(minute int) float64 {
			for _, burst := range []int{begin, second} {
				if minute >= burst && minute < burst+10 {
					return 700
				}
			}
			return 100
		})
		r, err := backtest.Run(t.Context(), o)
		require.NoError(t, err)
		return r.Summary[0].AboveThresholdMinutes
	}
	one := minutes("keda", begin)
	require.Greater(t, one, 1.0)
	for _, early := range []int{0, 25} {
		assert.Equal(t, one, minutes("keda/yesterday", begin+day-early),
			"%d minutes earlier the next day the pods are there", early)
		assert.Greater(t, minutes("keda/last-week", begin+day-early), one+1, "the trace does not go back a week")
	}
	late := begin + day - 35
	assert.Equal(t, minutes("keda", late), minutes("keda/yesterday", late), "half an hour earlier at most")
}

func TestPinball(t *testing.T) {
	assert.InDelta(t, 0.99, backtest.Pinball(1, 2, 0.99), 1e-12)
	assert.InDelta(t, 0.01, backtest.Pinball(2, 1, 0.99), 1e-12)
	assert.Zero(t, backtest.Pinball(1, 1, 0.99))
}

// What a trace of seconds counts arrives in the second that it was counted in, and who knows the
// load knows that one.
func TestCountsArePlayedExactly(t *testing.T) {
	var points []workload.Point
	for i := range 3600 {
		points = append(points, workload.Point{At: began.Add(time.Duration(i) * time.Second),
			Rate: 140 + 420*float64(i%2)})
	}
	trace, err := workload.NewTrace("counts", points)
	require.NoError(t, err)
	o := options(t)
	o.Trace, o.Advise, o.Targets = trace, false, nil
	o.Scalers, o.Min, o.Max, o.Threshold = []string{"clairvoyant"}, 1, 7, 0.7
	r, err := backtest.Run(t.Context(), o)
	require.NoError(t, err)
	assert.InDelta(t, 30, r.BeyondMax, 0.1, "seven pods hold 490, and each other second has 560")
	assert.InDelta(t, 30, r.Summary[0].AboveThresholdMinutes, 0.1)

	o.Max = 8
	r, err = backtest.Run(t.Context(), o)
	require.NoError(t, err)
	assert.Zero(t, r.BeyondMax)
	assert.Zero(t, r.Summary[0].AboveThresholdMinutes)
	assert.InDelta(t, 1800, r.Summary[0].OverSeconds, 1, "the seconds of 140")
}

// A hundredth of 40 requests a second is one every two or three seconds, and not none in each.
func TestScaledCountsArriveAtRandom(t *testing.T) {
	var points []workload.Point
	for i := range 3600 {
		points = append(points, workload.Point{At: began.Add(time.Duration(i) * time.Second), Rate: 40})
	}
	trace, err := workload.NewTrace("counts", points)
	require.NoError(t, err)
	o := options(t)
	o.Trace, o.Advise, o.Targets = trace.Scaled(0.01), false, nil
	o.Scalers, o.Min, o.Capacity = []string{"keda"}, 1, 0.1
	r, err := backtest.Run(t.Context(), o)
	require.NoError(t, err)
	assert.False(t, o.Trace.Counts())
	assert.Greater(t, r.Summary[0].MeanPods(), 4.0, "the work of four pods")
}

func TestDerivesACapacity(t *testing.T) {
	trace := traceOf(t, 199, func(minute int) float64 { return float64(minute + 1) })
	c, err := backtest.Capacity(trace, 0.5, 20)
	require.NoError(t, err)
	assert.InDelta(t, 198/(0.5*10), c, 1e-12, "198 is the 198th of 200")
	_, err = backtest.Capacity(traceOf(t, 500, func(minute int) float64 { return float64(minute / 500) }), 0.5, 20)
	assert.ErrorContains(t, err, "zero nearly everywhere")
}

func TestSearchDoesNotUseWhatItIsJudgedOn(t *testing.T) {
	o := options(t)
	o.Trace, o.Prices = traceOf(t, 30, waves), &score.Prices{PodHour: 1, Minute: 1}
	tunedTo, judgedFrom := backtest.Parts(o)
	assert.EqualValues(t, 18*60, tunedTo)
	assert.EqualValues(t, 18*60, judgedFrom)
	honest, err := backtest.Advise(t.Context(), o)
	require.NoError(t, err)
	require.NotEqual(t, honest.Default, honest.Best, "the search finds something")

	o.Trace = traceOf(t, 30, func(minute int) float64 {
		if minute > 18 {
			return 1300 * float64(minute%2)
		}
		return waves(minute)
	})
	poisoned, err := backtest.Advise(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, honest.Best, poisoned.Best)
	assert.Equal(t, honest.Tried, poisoned.Tried)
	assert.Equal(t, honest.Tuned, poisoned.Tuned)
	assert.NotEqual(t, honest.Judged, poisoned.Judged)
}

// The search varies only what docs/tuning.md has users change, and only what the method reads.
func TestSearchVariesFieldsThatUsersChange(t *testing.T) {
	o := options(t)
	for _, c := range []struct {
		params             pipeline.Params
		fixedMin, fixedMax bool
		want               []string
	}{
		{pipeline.HoltParams(), false, false, []string{"threshold", "minReplicas", "maxReplicas"}},
		{scaler.RecommendedParams(), false, false, []string{"threshold", "lateness", "minReplicas", "maxReplicas"}},
		{scaler.RecommendedParams(), true, true, []string{"threshold", "lateness"}},
	} {
		o.FixedMin, o.FixedMax = c.fixedMin, c.fixedMax
		s := backtest.Setting{Scaler: "foresail-total", Target: 0.7, Min: 2, Max: 20, Params: c.params,
			Metric: backtest.Utilization}
		better := backtest.Comparison{Default: backtest.Figures{Pods: score.Pods{Length: 1 * 3600, Seconds: 10 * 3600}},
			Best: backtest.Figures{Pods: score.Pods{Length: 1 * 3600, Seconds: 5 * 3600}}}
		var fields []string
		for field, tried := range backtest.Tried(o, s) {
			fields = append(fields, field)
			require.NotEmpty(t, tried, field)
			for _, v := range tried {
				assert.GreaterOrEqual(t, v.Min, s.Min, "the minimum may be there for redundancy")
				a := backtest.Advice{Default: s, Best: v, Judged: better}
				if v == s {
					assert.Empty(t, a.Changes(&v), field)
					continue
				}
				require.Len(t, a.Changes(&v), 1, field)
				assert.Equal(t, field, a.Changes(&v)[0].Field)
				p := v.Params
				p.Threshold, p.Min, p.Max = v.Target, v.Min, v.Max
				assert.NoError(t, p.Validate(), field)
				var patched struct {
					Spec v1alpha1.PredictedMetricSpec `json:"spec"`
				}
				require.NoError(t, yaml.UnmarshalStrict([]byte(a.YAML()), &patched), field)
				assert.NotEqual(t, v1alpha1.PredictedMetricSpec{}, patched.Spec, field)
			}
		}
		assert.ElementsMatch(t, c.want, fields)
	}
}

func compared(defaultMinutes, defaultPods, bestMinutes, bestPods float64) backtest.Comparison {
	figures := func(minutes, podHours float64) backtest.Figures {
		return backtest.Figures{Pods: score.Pods{Length: 12 * 3600, AboveThresholdMinutes: minutes,
			Seconds: 3600 * podHours}}
	}
	return backtest.Comparison{Default: figures(defaultMinutes, defaultPods), Best: figures(bestMinutes, bestPods)}
}

// With prices advice is in money, and in nothing else.
func TestAdviceIsInMoney(t *testing.T) {
	a := backtest.Advice{
		Scaler: "foresail-total", Tried: 20, Fields: []string{"threshold", "minReplicas"},
		Prices: &score.Prices{PodHour: 0.5, Minute: 2, Currency: "EUR"}, Capacity: 100,
		Default: backtest.Setting{Target: 0.7, Min: 2, Max: 20, Metric: backtest.Utilization,
			Params: scaler.RecommendedParams()},
		Tuned: compared(10, 80, 5, 80), Judged: compared(10, 80, 5, 84),
	}
	tried := "Tried: 20 settings of threshold, minReplicas on the first 60% of the trace (12.0 h of it). Time is counted above 0.7 whatever they aim at. " +
		"A pod costs 0.50 EUR an hour, and a minute above the threshold 2.00 EUR."
	a.Best = a.Default
	assert.False(t, a.Holds())
	assert.Equal(t, "Verdict: keep the settings. No other ones cost less.", a.Verdict())
	assert.Equal(t, []string{tried}, a.Reasons())

	a.Best.Target, a.Best.Min, a.Best.Max, a.Best.Params.Lateness = 0.65, 3, 30, 0.005
	assert.True(t, a.Holds(), "4 more pod-hours cost 2, and 5 minutes less save 10")
	assert.Equal(t, "Verdict: change the settings: on traffic that the search did not use that is 104.00 EUR a day instead of 120.00 EUR (13.3% less).", a.Verdict())
	assert.Equal(t, []string{
		tried,
		"Best: threshold: 650m instead of 700m, lateness: 0.5% instead of 1%, minReplicas: 3 instead of 2, maxReplicas: 30 instead of 20. " +
			"There that is 100.00 EUR a day instead of 120.00 EUR (16.7% less).",
	}, a.Reasons())
	assert.Equal(t, "spec:\n  lateness: 0.5%\n  maxReplicas: 30\n  minReplicas: 3\n  threshold: 650m\n", a.YAML())
	assert.Equal(t, "Save it as advice.yaml, as --out does, and apply it with: kubectl patch predictedmetric NAME --type merge --patch-file advice.yaml\n"+
		"In an HPA of your own that reads predicted_load_total set target.averageValue to 650m, minReplicas to 3, maxReplicas to 30 too.", a.HowToApply())

	a.Default.Metric, a.Best.Metric = backtest.Requests, backtest.Requests
	assert.Contains(t, a.YAML(), "threshold: \"65\"\n", "in requests per second")

	a.Judged = compared(10, 80, 11, 80)
	assert.False(t, a.Holds())
	assert.Empty(t, a.YAML())
	assert.Equal(t, "Verdict: keep the settings. The best others would not be worth it: on traffic that the search did not use that is 124.00 EUR a day instead of 120.00 EUR (3.3% more).", a.Verdict())
	a.Judged = compared(10, 80, 9.8, 80)
	assert.False(t, a.Holds(), "less than a hundredth")
}

// Without prices a minute is not weighed against a pod-hour: what is advised costs neither.
func TestAdviceWithoutPricesCostsNothing(t *testing.T) {
	a := backtest.Advice{Default: backtest.Setting{Target: 0.7}, Best: backtest.Setting{Target: 0.65},
		Tuned: compared(10, 80, 5, 80)}
	for _, c := range []struct {
		minutes, podHours float64
		holds             bool
	}{{5, 80, true}, {10, 70, true}, {10, 80, false}, {5, 80.1, false}, {10.1, 40, false}, {9.95, 79.9, false}} {
		a.Judged = compared(10, 80, c.minutes, c.podHours)
		assert.Equal(t, c.holds, a.Holds(), "%v", c)
	}
	a.Judged = compared(10, 80, 5, 80)
	assert.Equal(t, "Verdict: change the settings: on traffic that the search did not use that is 5.0 minutes above the threshold instead of 10.0, and 80.0 pod-hours instead of 80.0.", a.Verdict())
	assert.Contains(t, a.Reasons()[0], "--pod-price and --minute-price weigh one against the other")
	a.Best = a.Default
	assert.Contains(t, a.Verdict(),
		"No other ones have less time above the threshold for as few pod-hours, or fewer pod-hours for as little time.")
}

// The search minds what it is to save: with dear minutes it takes more pods, with dear pods fewer,
// and without prices it lists the choice.
func TestSearchGoesByThePrices(t *testing.T) {
	o := options(t)
	o.Trace = traceOf(t, 40, waves)
	advised := func(p *score.Prices) *backtest.Advice {
		o.Prices = p
		a, err := backtest.Advise(t.Context(), o)
		require.NoError(t, err)
		return a
	}
	careful, cheap, open := advised(&score.Prices{PodHour: 0.01, Minute: 10}), advised(&score.Prices{PodHour: 10,
		Minute: 0.01}), advised(nil)
	assert.Less(t, careful.Tuned.Best.AboveThresholdMinutes, careful.Tuned.Default.AboveThresholdMinutes)
	assert.Greater(t, careful.Tuned.Best.PodHours(), cheap.Tuned.Best.PodHours())
	assert.Less(t, cheap.Tuned.Best.PodHours(), cheap.Tuned.Default.PodHours())
	assert.LessOrEqual(t, open.Tuned.Best.PodHours(), open.Tuned.Default.PodHours())
	assert.LessOrEqual(t, open.Tuned.Best.AboveThresholdMinutes, open.Tuned.Default.AboveThresholdMinutes)
	assert.NotContains(t, open.Fields, "maxReplicas", "all pods were never too few")
	require.Greater(t, len(open.Trades), 2)
	for i, row := range open.Trades[1:] {
		assert.Greater(t, row.PodHours(), open.Trades[i].PodHours())
		assert.Less(t, row.AboveThresholdMinutes, open.Trades[i].AboveThresholdMinutes, "more pods are for something")
	}

	o.Max = 6 // of the ten that 700 requests a second need
	raised := advised(&score.Prices{PodHour: 0.01, Minute: 10})
	assert.Contains(t, raised.Fields, "maxReplicas")
	assert.Greater(t, raised.Best.Max, 6)
}

func TestFindings(t *testing.T) {
	row := func(name string, target, minutes, podHours float64) backtest.Row {
		return backtest.Row{
			Setting: backtest.Setting{Scaler: name, Target: target},
			Figures: backtest.Figures{Pods: score.Pods{Length: 10 * 3600, AboveThresholdMinutes: minutes,
				Seconds: 3600 * podHours}},
		}
	}
	o := options(t)
	r := backtest.Result{
		Options: o, BeyondMax: 1.5,
		Summary:  []backtest.Row{row("keda", 0.7, 60, 40), row("foresail-total", 0.7, 12, 50)},
		Frontier: []backtest.Row{row("keda", 0.5, 6, 60), row("keda", 0.7, 60, 40), row("foresail-total", 0.7, 12, 50)},
	}
	r.Summary[1].Abrupt = score.Abrupt{MomentaryMinutes: 7.5, SuddenMinutes: 4.25}
	assert.Equal(t, []string{
		"With Foresail the load of a pod was above 0.7 for 12.0 minutes (2.00% of the time), with an HPA for 60.0 minutes (10.00%). " +
			"Foresail paid for 50.0 pod-hours, 25.0% more than an HPA, which paid for 40.0.",
		"With another target, so that it pays for as many pods as Foresail (5.00 on average), an HPA would be above the threshold for 5.50% of the time, Foresail for 2.00%.",
		"With a target that keeps it above the threshold as rarely as Foresail (2.00% of the time), an HPA would pay for 5.78 pods on average, Foresail for 5.00.",
		"Of the 12.0 minutes above the threshold with Foresail, 7.5 are bursts of less than 15s, and 4.2 are within 40s of a jump by half or more, which is about how long pods for it take. " +
			"With as many pods no other forecast changes the former, nor the latter unless jumps recur.",
		"For 1.5 minutes even all 20 pods would have been too few: raise the maximum to stay at or below the threshold.",
	}, backtest.Findings(&r))

	o.Prices = &score.Prices{PodHour: 0.5, Minute: 1, Currency: "EUR"}
	assert.Equal(t, "In money, Foresail costs 37.00 EUR, 53.8% less than an HPA, which costs 80.00 EUR.",
		backtest.Findings(&r)[1])
	o.Prices.PodHour, o.Prices.Minute = 0, 0
	assert.Contains(t, backtest.Findings(&r)[1], "0.00 EUR, compared with an HPA")
}

func TestFindingsCompareWithTheSameBehaviour(t *testing.T) {
	row := func(name string, target, minutes, podHours float64) backtest.Row {
		return backtest.Row{
			Setting: backtest.Setting{Scaler: name, Target: target},
			Figures: backtest.Figures{Pods: score.Pods{Length: 10 * 3600, AboveThresholdMinutes: minutes,
				Seconds: 3600 * podHours}},
		}
	}
	r := backtest.Result{
		Options: options(t),
		Summary: []backtest.Row{row("keda", 0.7, 60, 40), row("foresail-total", 0.7, 12, 50),
			row("keda/same-behavior", 0.7, 24, 45)},
	}
	text := func() string {
		all := backtest.Findings(&r)
		return all[len(all)-1]
	}
	begin := "With the behavior of Foresail's, an HPA would be above the threshold for 24.0 minutes (4.00% of the time) " +
		"and pay for 45.0 pod-hours, 10.0% less than Foresail"
	assert.Equal(t, begin+".", text())
	r.Frontier = []backtest.Row{row("foresail-total", 0.7, 12, 50), row("keda/same-behavior", 0.5, 6, 55),
		row("keda/same-behavior", 0.7, 24, 45)}
	assert.Equal(t, begin+". For as many pods (5.00) it would be above the threshold for 2.50% of the time, Foresail for 2.00%."+
		" Above it as rarely (2.00%), it would pay for 5.17 pods, Foresail for 5.00.", text())
	r.Options.Trace, r.FrontierHours = traceOf(t, 25*60, waves), 24
	assert.Contains(t, text(), "Foresail. On 24 hours sampled from the traffic, for as many pods (5.00)")
	r.Summary[2].Seconds = 50 * 3600
	assert.Contains(t, text(), "50.0 pod-hours, as much as Foresail.")
}

func TestRejectsUnplayableOptions(t *testing.T) {
	for want, change := range map[string]func(*backtest.Options){
		"the trace is 9m0s long: must be at least 10m0s": func(o *backtest.Options) { o.Trace = traceOf(t, 9, waves) },
		"the trace is zero everywhere":                   func(o *backtest.Options) { o.Trace = o.Trace.Scaled(0) },
		`scaler: "x": must be one of hpa-cpu`:            func(o *backtest.Options) { o.Scalers = []string{"x"} },
		"horizonMultiplier: -1":                          func(o *backtest.Options) { o.Params.HorizonMultiplier = -1 },
	} {
		o := options(t)
		require.NoError(t, o.Validate())
		change(o)
		assert.ErrorContains(t, o.Validate(), want)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := options(t)
	o.Progress = func(int, int) { cancel() }
	_, err := backtest.Run(ctx, o)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestProgressCountsEachRun(t *testing.T) {
	o := options(t)
	var done, all int
	o.Progress = func(d, a int) {
		assert.Equal(t, done+1, d)
		assert.LessOrEqual(t, d, a)
		done, all = d, a
	}
	_, err := backtest.Run(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, all, done)
}

// Two jumps in two sections, with two seeds, are twice one jump. Five pods have enough at 350 requests/s.
func TestAbruptIsAddedUpOverSections(t *testing.T) {
	played := func(seeds []uint64, jumps ...int) score.Abrupt {
		o := options(t)
		o.Trace = traceOf(t, 7*60, func(minute int) float64 {
			if slices.ContainsFunc(jumps, func(at int) bool { return minute >= at && minute < at+5 }) {
				return 1500
			}
			return 100
		})
		o.Scalers, o.Min, o.Max, o.Seeds, o.Targets, o.Advise = []string{"keda"}, 5, 5, seeds, nil, false
		r, err := backtest.Run(t.Context(), o)
		require.NoError(t, err)
		return r.Summary[0].Abrupt
	}
	one, two := played([]uint64{1}, 100), played([]uint64{1, 2}, 100, 400)
	assert.Greater(t, one.SuddenMinutes, 40./60, "the startup time and 15 s")
	assert.Less(t, one.SuddenMinutes, 80./60)
	assert.InDelta(t, 2*one.SuddenMinutes, two.SuddenMinutes, 1e-9)
	assert.Zero(t, two.MomentaryMinutes)
}

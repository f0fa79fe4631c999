package evaluation_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/lab/play/evaluation"
	"github.com/foresail/foresail/internal/lab/play/evaluation/evaluationtest"
	"github.com/foresail/foresail/internal/lab/score"
)

var (
	end = time.Date(2026, 5, 8, 0, 0, 0, 0, time.UTC)
	key = types.NamespacedName{Namespace: "shop", Name: "checkout"}
)

func metricOf(t *testing.T, extra string) *v1alpha1.PredictedMetric {
	t.Helper()
	var pm v1alpha1.PredictedMetric
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
metadata: {namespace: shop, name: checkout}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: checkout}
  threshold: 700m
  `+strings.ReplaceAll(strings.TrimSpace(extra), "\n", "\n  ")), &pm))
	return &pm
}

const spec = `
source: {pods: {metric: nodejs_eventloop_utilization}}
saturation: 1
minReplicas: 2
maxReplicas: 30`

// level is a replica's view of some pods that carry a load each, for some minutes up to the end.
func level(minutes int, edit func(ago time.Duration, v map[string]float64)) (all []evaluationtest.Scrape) {
	for ago := time.Duration(minutes) * time.Minute; ago >= 0; ago -= evaluationtest.Every {
		v := map[string]float64{"ready_pods": 4, "target_replicas": 4, "load": 2, "load_per_instance": 0.5,
			"threshold": 0.7}
		if edit != nil {
			edit(ago, v)
		}
		if len(v) > 0 {
			all = append(all, evaluationtest.Scrape{At: end.Add(-ago), Values: v})
		}
	}
	return all
}

func source(t *testing.T, series ...[]evaluationtest.Series) evaluation.Source {
	t.Helper()
	var all []evaluationtest.Series
	for _, s := range series {
		all = append(all, s...)
	}
	return evaluationtest.Source(t, evaluationtest.Serve(t, all))
}

func exposed(pod string, scrapes []evaluationtest.Scrape) []evaluationtest.Series {
	return evaluationtest.Exposed(key.Namespace, key.Name, pod, scrapes)
}

var twelve = evaluation.Spans{Names: []string{"12h"}, Lengths: []time.Duration{12 * time.Hour}}

var play = evaluation.Play{Seeds: []uint64{1}, Capacity: 100}

func report(t *testing.T, pm *v1alpha1.PredictedMetric, series ...[]evaluationtest.Series) *evaluation.Result {
	t.Helper()
	r, err := evaluation.Read(t.Context(), source(t, series...), key, end, 12*time.Hour)
	require.NoError(t, err)
	out, err := evaluation.Evaluate(t.Context(), pm, r, twelve, play)
	require.NoError(t, err)
	require.Len(t, out.Spans, 1)
	return out
}

// unplayable has a PredictedMetric that is not simulated, to look at what happened alone.
func unplayable(t *testing.T) *v1alpha1.PredictedMetric {
	return metricOf(t, "source: {prometheus: {address: 'http://prometheus:9090', query: 'sum(queue)', scope: Target}}\nminReplicas: 0\nmaxReplicas: 30")
}

func TestWhatHappenedIsCounted(t *testing.T) {
	s := report(t, unplayable(t), exposed("a", level(180, func(ago time.Duration, v map[string]float64) {
		switch {
		case ago <= 30*time.Minute: // four pods, and a fifth that has been ordered
			v["target_replicas"] = 5
		case ago <= 45*time.Minute: // 15 minutes with too few
			v["load"], v["load_per_instance"] = 3, 0.75
		case ago > 90*time.Minute:
			v["target_replicas"], v["ready_pods"], v["load_per_instance"] = 6, 6, 2.0/6
		}
	})))
	ran := s.Spans[0].Rows[0]
	assert.InDelta(t, 15, ran.TooFewMinutes.Value, 1e-9)
	assert.InDelta(t, 6*1.5+4+5*0.5, ran.PodHours.Value, 6*15.0/3600, "pods are paid for from their order on")
	assert.Equal(t, []float64{1, 1}, []float64{ran.ScaleUps, ran.ScaleDowns})
	assert.InDelta(t, 3, s.Spans[0].KnownHours, 1e-9)
	assert.Len(t, s.Spans[0].Rows, 1)
	assert.Contains(t, s.Unsimulated, "spec.minReplicas is 0")
	assert.Equal(t, "In the last 12 hours (of which 3 h of 12 h are known) too few pods were ready for 15 min (8.3% of the time), with 16 pod-hours.", s.Spans[0].Verdict[0])
}

// The status, the page and the report have one meaning of too few pods: there could have been more.
func TestTimeAtTheMaximumIsAFigureOfItsOwn(t *testing.T) {
	pm := unplayable(t)
	pm.Spec.MaxReplicas = new(int32(4))
	overloaded := exposed("a", level(240, func(ago time.Duration, v map[string]float64) {
		if ago <= 180*time.Minute {
			v["load"], v["load_per_instance"] = 4, 1
		}
		if ago > 150*time.Minute && ago <= 180*time.Minute {
			v["ready_pods"], v["target_replicas"], v["load_per_instance"] = 3, 3, 4.0/3
		}
	}))
	all := report(t, pm, overloaded)
	s := all.Spans[0]
	ran := s.Rows[0]
	assert.Contains(t, strings.Join(all.Notes, "\n"), "counted with today's maxReplicas of 4")
	assert.InDelta(t, 30, ran.TooFewMinutes.Value, 1e-9, "there could have been a fourth pod")
	assert.InDelta(t, 150, ran.AtMaximumMinutes.Value, 1e-9)
	assert.Equal(t, "For another 150 min (62% of the time) the target was at its maximum, with more load than that many pods hold: only a higher maximum helps.", s.Verdict[1])

	pm.Spec.Schedules = []v1alpha1.Schedule{{Name: "night", Start: new(metav1.NewTime(end.Add(-time.Hour))),
		End: new(metav1.NewTime(end.Add(time.Hour))), MaxReplicas: new(int32(9))}}
	ran = report(t, pm, overloaded).Spans[0].Rows[0]
	assert.InDelta(t, 90, ran.TooFewMinutes.Value, 1, "the maximum of the schedule holds in its window")
	assert.InDelta(t, 90, ran.AtMaximumMinutes.Value, 1)
}

// Each replica exposes the same: what two of them expose is not twice as much, and going from one
// to the other changes nothing.
func TestReplicasOfForesailAreBelievedOneAtATime(t *testing.T) {
	one := level(180, func(ago time.Duration, v map[string]float64) {
		if ago < 60*time.Minute {
			v["target_replicas"] = 5
		}
	})
	// is scraped 7 s later, and so sees the change at another time; it restarts in between
	var other []evaluationtest.Scrape
	for _, s := range one {
		values := maps.Clone(s.Values)
		if ago := end.Sub(s.At); ago < 100*time.Minute && ago > 95*time.Minute {
			continue
		} else if ago <= 95*time.Minute && ago > 90*time.Minute {
			values = map[string]float64{"ready_pods": 4} // it warms up
		}
		other = append(other, evaluationtest.Scrape{At: s.At.Add(7 * time.Second), Values: values})
	}
	alone := report(t, unplayable(t), exposed("b", one))
	both := report(t, unplayable(t), exposed("a", other), exposed("b", one))
	assert.Equal(t, 2, both.Replicas)
	a, b := alone.Spans[0], both.Spans[0]
	assert.InDelta(t, a.Rows[0].PodHours.Value, b.Rows[0].PodHours.Value, 0.02)
	assert.Equal(t, a.Rows[0].ScaleUps, b.Rows[0].ScaleUps)
	assert.Zero(t, b.Rows[0].ScaleDowns)
	assert.InDelta(t, a.KnownHours, b.KnownHours, 0.01, "one of them knew the load at all times")
}

func TestGapsAreNoLoad(t *testing.T) {
	s := report(t, unplayable(t), exposed("a", level(300, func(ago time.Duration, v map[string]float64) {
		switch {
		case ago > 200*time.Minute && ago <= 240*time.Minute: // nothing was scraped
			clear(v)
		case ago > 100*time.Minute && ago <= 130*time.Minute: // there was no forecast
			for _, name := range []string{"load", "load_per_instance", "target_replicas"} {
				delete(v, name)
			}
		case ago == 50*time.Minute: // one scrape was missed
			clear(v)
		case ago > 10*time.Minute && ago <= 20*time.Minute: // there was no pod
			v["ready_pods"], v["load"] = 0, 0
		}
	}))).Spans[0]
	assert.InDelta(t, (300-40-30)/60.0, s.KnownHours, 0.03,
		"but for the gaps of 40 and 30 minutes: a missed scrape is none, nor a queue without pods")
	assert.InDelta(t, 4*s.KnownHours, s.Rows[0].PodHours.Value, 0.1)
	var missing []string
	for _, g := range s.Gaps {
		missing = append(missing, g.Missing)
	}
	assert.Equal(t, []string{"all metrics of Foresail", "all metrics of Foresail",
		"foresail_load and foresail_load_per_instance"}, missing)
	assert.Equal(t, 7*time.Hour, s.Gaps[0].To.Sub(s.Gaps[0].From).Round(time.Minute), "before it began")
	assert.InDelta(t, 40, s.Gaps[1].To.Sub(s.Gaps[1].From).Minutes(), 1)
	assert.Zero(t, s.MoreGaps)
}

func TestLoadFollowsFromThatOfAPod(t *testing.T) {
	without := level(180, func(_ time.Duration, v map[string]float64) { delete(v, "load") })
	pm := metricOf(t, spec)
	with, old := report(t, pm, exposed("a", level(180, nil))), report(t, pm, exposed("a", without))
	assert.Equal(t, with.Spans[0].Rows, old.Spans[0].Rows, "a version that did not expose foresail_load")
}

func TestOthersArePlayedOnTheSameLoad(t *testing.T) {
	ran := evaluationtest.Ran(end.Add(-9*time.Hour), 9*time.Hour)
	s := report(t, metricOf(t, spec), exposed("a", ran)).Spans[0]
	require.Len(t, s.Rows, 5)
	byName := map[string]evaluation.Row{}
	for _, row := range s.Rows {
		byName[row.Scaler] = row
		assert.NotNil(t, row.PodHours.Low, row.Title)
	}
	asRan, ours, hpa, best := byName[""], byName["foresail-total"], byName["keda"], byName["clairvoyant"]
	assert.InDelta(t, asRan.PodHours.Value, ours.PodHours.Value, 0.05*asRan.PodHours.Value,
		"the fleet was scaled by Foresail")
	assert.Greater(t, hpa.TooFewMinutes.Value, 3*ours.TooFewMinutes.Value)
	assert.Zero(t, best.TooFewMinutes.Value)
	assert.Less(t, best.PodHours.Value, ours.PodHours.Value)
	assert.True(t, hpa.ThanForesail.TooFewMinutes.Clear())
	assert.Nil(t, ours.ThanForesail)
	require.Len(t, s.Verdict, 5)
	assert.Regexp(t, `^So Foresail saves \S+ min \(\S+ to \S+\) with too few pods against an HPA`, s.Verdict[3])
	t.Log(strings.Join(s.Verdict, "\n"))
}

// With prices the report is in money too, in text, page and JSON.
func TestReportsAreInMoney(t *testing.T) {
	r, err := evaluation.Read(t.Context(), source(t,
		exposed("a", evaluationtest.Ran(end.Add(-9*time.Hour), 9*time.Hour))), key, end, 12*time.Hour)
	require.NoError(t, err)
	priced := play
	priced.Prices = &score.Prices{PodHour: 0.5, Minute: 2, Currency: "EUR"}
	out, err := evaluation.Evaluate(t.Context(), metricOf(t, spec), r, twelve, priced)
	require.NoError(t, err)
	assert.Equal(t, "EUR", out.Currency)
	s := out.Spans[0]
	for _, row := range s.Rows {
		require.NotNil(t, row.Cost, row.Title)
		assert.InDelta(t, 0.5*row.PodHours.Value+2*(row.TooFewMinutes.Value+row.AtMaximumMinutes.Value), row.Cost.Value,
			1e-9, row.Title)
	}
	assert.Regexp(t, `^That cost \d+\.\d\d EUR: 0\.50 EUR for an hour of a pod, and 2\.00 EUR for a minute`,
		s.Verdict[1])
	assert.Contains(t, strings.Join(s.Verdict, "\n"), "\nIn money an HPA costs ")
	var text, page strings.Builder
	require.NoError(t, evaluation.ReportOn([]*evaluation.Result{out, out}).WriteText(&text))
	require.NoError(t, evaluation.ReportOn([]*evaluation.Result{out, out}).WritePage(&page))
	for _, written := range []string{text.String(), page.String()} {
		assert.Equal(t, 3, strings.Count(regexp.MustCompile(`data-head="[^"]*"`).ReplaceAllString(written, ""),
			"cost, EUR"), "of the summary, and of each report")
	}
	assert.Empty(t, report(t, metricOf(t, spec), exposed("a", level(60, nil))).Currency)
}

func TestTooFewHoursTellNoDifference(t *testing.T) {
	s := report(t, metricOf(t, spec), exposed("a", evaluationtest.Ran(end.Add(-2*time.Hour), 2*time.Hour))).Spans[0]
	assert.Nil(t, s.Rows[2].ThanForesail.TooFewMinutes.Low)
	assert.Contains(t, s.Verdict[len(s.Verdict)-1], "too short a time to tell a difference: 6 known hours are needed")
}

// In a few minutes any share of them is chance.
func TestTooFewMinutesHaveNoShare(t *testing.T) {
	pm := unplayable(t)
	overloaded := level(4, func(_ time.Duration, v map[string]float64) { v["load"], v["load_per_instance"] = 4, 1 })
	r, err := evaluation.Read(t.Context(), source(t, exposed("a", overloaded)), key, end, time.Hour)
	require.NoError(t, err)
	out, err := evaluation.Evaluate(t.Context(), pm, r,
		evaluation.Spans{Names: []string{"1h"}, Lengths: []time.Duration{time.Hour}}, play)
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, evaluation.ReportOn([]*evaluation.Result{out}).WriteText(&text))
	assert.Contains(t, text.String(), "The last hour, to ")
	assert.Contains(t, text.String(),
		"  Too little data to judge by: 4 min known, it takes 1 h. In it too few pods were ready for 4 min, with 0.3 pod-hours.\n")
	assert.Contains(t, text.String(), "  Known: 4 min of 1 h (6.7%).\n")
	assert.NotContains(t, text.String(), "100%")
}

func TestALevelLoadTellsNoDifference(t *testing.T) {
	quiet := level(9*60, func(_ time.Duration, v map[string]float64) {
		v["ready_pods"], v["target_replicas"], v["load"], v["load_per_instance"] = 2, 2, 0.2, 0.1
	})
	s := report(t, metricOf(t, spec), exposed("a", quiet)).Spans[0]
	assert.Contains(t, s.Verdict,
		"So between Foresail and an HPA there is no difference that can be told from this load.")
	assert.Contains(t, s.Verdict, "What ran is as the simulator has Foresail, as far as can be told.")
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		series []evaluationtest.Series
		want   string
	}{
		"nothing": {nil, "it has no metrics of the PredictedMetric shop/checkout between 2026-05-07T12:00:00Z and 2026-05-08T00:00:00Z, of no other either: it must be a server that has scraped Foresail's /metrics"},
		"others":  {evaluationtest.Exposed("shop", "cart", "a", level(10, nil)), `but of others: "shop/cart"`},
		"few":     {exposed("a", level(1, nil)), "there are 5 samples: a report needs at least 10"},
		"no honour": {[]evaluationtest.Series{{Labels: map[string]string{"__name__": "foresail_ready_pods",
			"namespace": "foresail-system", "exported_namespace": "shop",
			"predictedmetric": "checkout"}, Samples: []evaluationtest.Sample{{At: end,
			Value: 1}}}}, "scrape Foresail with honor_labels: true"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evaluation.Read(t.Context(), source(t, c.series), key, end, 12*time.Hour)
			require.ErrorIs(t, err, evaluation.ErrNotRecorded)
			assert.ErrorContains(t, err, c.want)
		})
	}
	sparse := level(10*60, nil)
	var rare []evaluationtest.Scrape
	for i := 0; i < len(sparse); i += 40 {
		rare = append(rare, sparse[i])
	}
	_, err := evaluation.Read(t.Context(), source(t, exposed("a", rare)), key, end, 12*time.Hour)
	assert.ErrorContains(t, err, "samples of foresail_ready_pods are 10m0s apart: must be at most 5m0s")

	r, err := evaluation.Read(t.Context(), source(t,
		exposed("a", level(60, func(_ time.Duration, v map[string]float64) {
			maps.DeleteFunc(v, func(name string, _ float64) bool { return name != "ready_pods" })
		}))), key, end, 12*time.Hour)
	require.NoError(t, err)
	_, err = evaluation.Evaluate(t.Context(), metricOf(t, spec), r, twelve, play)
	assert.ErrorContains(t, err, "none of a load: neither foresail_load nor foresail_load_per_instance")
}

// A metric whose target an HPA scales: what ran is what that did, and the last sentence is what
// Foresail would do instead.
func TestWhatAnotherScalerDidIsNotForesail(t *testing.T) {
	fixed := evaluationtest.Ran(end.Add(-9*time.Hour), 9*time.Hour)
	for _, s := range fixed {
		s.Values["ready_pods"], s.Values["target_replicas"] = 9, 9
		s.Values["load_per_instance"] = s.Values["load"] / 9
	}
	s := report(t, metricOf(t, spec), exposed("a", fixed)).Spans[0]
	assert.Regexp(t, `^Foresail as it is simulated has \S+ min \(\S+ to \S+\) less with too few pods`, s.Verdict[4])
	assert.Contains(t, s.Verdict[4],
		"if something else did, such as an HPA of your own, this is the difference that Foresail would make.")
}

func TestWhatIsAssumedIsSaid(t *testing.T) {
	notes := func(extra string, scrapes []evaluationtest.Scrape) string {
		r := report(t, metricOf(t, extra), exposed("a", scrapes))
		require.Empty(t, r.Unsimulated)
		return strings.Join(r.Notes, "\n")
	}
	quick := level(60, func(ago time.Duration, v map[string]float64) {
		v["startup_time_seconds"], v["sample_interval_seconds"] = 40, 10
		if ago > 30*time.Minute {
			v["threshold"] = 0.6
		}
	})
	text := notes("source: {pods: {metric: x}}", quick)
	for _, want := range []string{
		"A pod takes 40s to start (measured).",
		"Foresail reads pods every 10s as it did, and HPAs every 10s.",
		"spec.maxReplicas is absent: all scalers are simulated with at most 8 pods, twice the most that there were.",
		"The threshold was another one for 30m0s; all of the time is held against that of now.",
	} {
		assert.Contains(t, text, want)
	}
	text = notes("source: {pods: {metric: x}}\nbaseline: 100m\nmaxReplicas: 30", level(60, nil))
	assert.Contains(t, text, "A pod takes 25s to start (assumed by spec.startupTime).")
	assert.Contains(t, text, "HPAs are simulated as if they read the load and not the metric, which with spec.model Overhead is better than they could.")

	text = notes(spec, level(60, func(ago time.Duration, v map[string]float64) {
		if ago <= 20*time.Minute {
			v["load"], v["load_per_instance"] = 3.96, 0.99
		}
	}))
	assert.Contains(t, text, "For 20m0s pods were at the maximum of the metric: more load came than is recorded, and all others meet less than that.")

	many := level(60, func(_ time.Duration, v map[string]float64) { v["target_replicas"] = 1200 })
	assert.Contains(t, report(t, metricOf(t, spec), exposed("a", many)).Unsimulated,
		"there were 1200 pods, and the simulator plays at most 1000")
	assert.Contains(t, report(t, metricOf(t, spec), exposed("a", level(5, nil))).Unsimulated,
		"the trace is 5m0s long: must be at least 10m0s")
}

// A load in units of the metric is the same as in parts of a pod: only its share of the threshold matters.
func TestUnitsMakeNoDifference(t *testing.T) {
	in := func(factor float64) []evaluationtest.Scrape {
		all := evaluationtest.Ran(end.Add(-2*time.Hour), 2*time.Hour)
		for _, s := range all {
			for _, name := range []string{"load", "load_per_instance", "threshold"} {
				s.Values[name] *= factor
			}
		}
		return all
	}
	pm := metricOf(t, "source: {pods: {metric: x}}\nminReplicas: 2\nmaxReplicas: 30")
	one := report(t, pm, exposed("a", in(1)))
	pm.Spec.Threshold.SetMilli(700_000)
	thousand := report(t, pm, exposed("a", in(1000)))
	for i, row := range one.Spans[0].Rows {
		assert.InDelta(t, row.TooFewMinutes.Value, thousand.Spans[0].Rows[i].TooFewMinutes.Value, 0.3, row.Title)
		assert.InDelta(t, row.PodHours.Value, thousand.Spans[0].Rows[i].PodHours.Value, 0.1, row.Title)
	}
}

func TestSinceIsCutOutOfTheRecord(t *testing.T) {
	scrapes := level(9*60, func(ago time.Duration, v map[string]float64) {
		if ago > 4*time.Hour && ago <= 5*time.Hour {
			v["load"], v["load_per_instance"] = 4, 1
		}
	})
	r, err := evaluation.Read(t.Context(), source(t, exposed("a", scrapes)), key, end, 6*time.Hour)
	require.NoError(t, err)
	out, err := evaluation.Evaluate(t.Context(), unplayable(t), r,
		evaluation.Spans{Names: []string{"2h", "6h"}, Lengths: []time.Duration{2 * time.Hour, 6 * time.Hour}}, play)
	require.NoError(t, err)
	assert.Zero(t, out.Spans[0].Rows[0].TooFewMinutes.Value)
	assert.InDelta(t, 60, out.Spans[1].Rows[0].TooFewMinutes.Value, 1e-9)
	assert.InDelta(t, 2, out.Spans[0].KnownHours, 0.01)
	assert.InDelta(t, 6, out.Spans[1].KnownHours, 0.01)
	assert.Empty(t, out.Spans[1].Gaps)
}

func TestSeveralReportsBeginWithASummary(t *testing.T) {
	r := report(t, unplayable(t), exposed("a", level(60, nil)))
	text := func(all ...*evaluation.Result) string {
		var b strings.Builder
		require.NoError(t, evaluation.ReportOn(all).WriteText(&b))
		return b.String()
	}
	assert.True(t, strings.HasPrefix(text(r), "PredictedMetric shop/checkout"))
	assert.Regexp(t, `(?m)\A +too few pods, min +with an HPA +at the maximum, min +pod-hours +with an HPA +known\nshop/checkout +0 +- +0 +4 +- +8.3%\n`, text(r, r))
	var page strings.Builder
	require.NoError(t, evaluation.ReportOn([]*evaluation.Result{r, r}).WritePage(&page))
	assert.Regexp(t, `<span>shop/checkout</span></td><td data-head="too few pods, min"><span>0</span></td><td data-head="with an HPA"><span>-</span>`, page.String())
	assert.Equal(t, 2, strings.Count(page.String(), "<svg"))
}

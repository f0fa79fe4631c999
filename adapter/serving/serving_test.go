package serving

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving/servingtest"
)

// read reads a metric of the namespace shop at servingtest.Now.
func read(r Reader, metric, selector string) (Item, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return Item{}, err
	}
	return Read(r, Query{Namespace: "shop", Selector: parsed, Metric: metric, Now: servingtest.Now})
}

// errorOf requires an *Error.
func errorOf(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	return e
}

func TestReadReturnsTheItem(t *testing.T) {
	m := servingtest.NewMemory(servingtest.Healthy("checkout-elu", "checkout"))
	for metric, milli := range map[string]int64{
		LoadTotal: 10010, // 14.3 instances
		Load:      1001,
		Replicas:  14000,
	} {
		item, err := read(m, metric, "predictedmetric=checkout-elu")
		require.NoError(t, err, metric)
		assert.Equal(t, Item{
			Labels:    map[string]string{"predictedmetric": "checkout-elu", "kind": "Deployment", "target": "checkout"},
			Milli:     milli,
			Timestamp: servingtest.Now.Add(-2 * time.Second),
		}, item, metric)
	}
}

func TestByName(t *testing.T) {
	assert.Equal(t, "predictedmetric=a", ByName("a").String())
	item, err := Read(servingtest.NewMemory(servingtest.Healthy("a", "x"), servingtest.Healthy("b", "x")),
		Query{Namespace: "shop", Selector: ByName("b"), Metric: Load, Now: servingtest.Now})
	require.NoError(t, err)
	assert.Equal(t, "b", item.Labels[LabelMetric])
}

func TestTimestampsAreNotInTheFuture(t *testing.T) {
	ahead := servingtest.Changed(servingtest.Healthy("a", "x"),
		func(s *snapshot.Snapshot) { s.NewestSample = servingtest.Now.Add(time.Second) })
	item, err := read(servingtest.NewMemory(ahead), LoadTotal, "")
	require.NoError(t, err)
	assert.Equal(t, servingtest.Now, item.Timestamp)
}

func TestSelectors(t *testing.T) {
	m := servingtest.NewMemory(
		servingtest.Healthy("cart-cpu", "cart"),
		servingtest.Healthy("cart-elu", "cart"),
		servingtest.Changed(servingtest.Healthy("db-elu", "db"),
			func(s *snapshot.Snapshot) { s.TargetKind = "StatefulSet" }),
		servingtest.Changed(servingtest.Healthy("cart-elu", "cart"),
			func(s *snapshot.Snapshot) { s.Metric.Namespace = "other" }),
	)
	all := []string{"cart-cpu", "cart-elu", "db-elu"}
	for selector, want := range map[string][]string{
		"":                              all,
		"predictedmetric=cart-elu":      {"cart-elu"},
		"predictedmetric==cart-elu":     {"cart-elu"},
		"predictedmetric in (cart-elu)": {"cart-elu"},
		"predictedmetric in (cart-elu, db-elu, none)":    {"cart-elu", "db-elu"},
		"predictedmetric!=cart-elu":                      {"cart-cpu", "db-elu"},
		"predictedmetric notin (cart-elu, cart-cpu)":     {"db-elu"},
		"predictedmetric":                                all,
		"!owner":                                         all,
		"kind=StatefulSet":                               {"db-elu"},
		"target=cart":                                    {"cart-cpu", "cart-elu"},
		"target=cart,predictedmetric!=cart-cpu":          {"cart-elu"},
		"predictedmetric=cart-elu,target=cart":           {"cart-elu"},
		"predictedmetric=cart-elu,kind in (Deployment)":  {"cart-elu"},
		"predictedmetric=cart-elu,target=db":             nil,
		"predictedmetric=cart-elu,predictedmetric=other": nil,
		"predictedmetric=none":                           nil,
		"!predictedmetric":                               nil,
		"owner":                                          nil,
		"owner=me":                                       nil,
		"target>1":                                       nil,
		"target<1":                                       nil,
	} {
		t.Run(selector, func(t *testing.T) {
			item, err := read(m, LoadTotal, selector)
			switch len(want) {
			case 0:
				assert.Equal(t, NotFound, errorOf(t, err).Class)
			case 1:
				require.NoError(t, err)
				assert.Equal(t, want[0], item.Labels[LabelMetric])
			default:
				assert.Equal(t, ReasonAmbiguous, errorOf(t, err).Reason)
				assert.ErrorContains(t, err, "("+strings.Join(want, ", ")+")")
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		_, err := Read(m, Query{Namespace: "shop", Selector: labels.Nothing(), Metric: LoadTotal, Now: servingtest.Now})
		assert.Equal(t, NotFound, errorOf(t, err).Class)
	})
}

// A user who tries a second PredictedMetric in dry run must not take the metric away from an HPA that
// selects by the target.
func TestDryRunsMakeNoSelectorAmbiguous(t *testing.T) {
	dry := func(name string) snapshot.Snapshot {
		return servingtest.Changed(servingtest.Healthy(name, "cart"), func(s *snapshot.Snapshot) { s.DryRun = true })
	}
	m := servingtest.NewMemory(dry("a"), servingtest.Healthy("cart-elu", "cart"), dry("trial"))
	item, err := read(m, LoadTotal, "target=cart")
	require.NoError(t, err)
	assert.Equal(t, "cart-elu", item.Labels[LabelMetric])
	_, err = read(m, LoadTotal, "predictedmetric=trial")
	assert.Equal(t, ReasonDryRun, errorOf(t, err).Reason)
	_, err = read(m, LoadTotal, "predictedmetric!=cart-elu")
	assert.Equal(t, ReasonAmbiguous, errorOf(t, err).Reason)
}

func TestErrors(t *testing.T) {
	shop := func(change func(*snapshot.Snapshot)) []snapshot.Snapshot {
		return []snapshot.Snapshot{servingtest.Changed(servingtest.Healthy("checkout-elu", "checkout"), change)}
	}
	const more = " (details: kubectl describe predictedmetric -n shop checkout-elu)"
	const notNow = Unavailable
	for _, c := range []struct {
		name     string
		held     []snapshot.Snapshot
		metric   string // empty: all three
		selector string
		class    Class
		reason   string
		message  string
	}{
		{
			name: "unknown metric", held: []snapshot.Snapshot{servingtest.Healthy("a", "x")}, metric: "predicted_loads",
			class: NotFound, reason: ReasonUnknownMetric,
			message: `there is no metric "predicted_loads": must be one of predicted_load_total, predicted_load, predicted_replicas`,
		},
		{
			name: "empty namespace", selector: "predictedmetric=a",
			class: NotFound, reason: ReasonNotFound,
			message: `the selector "predictedmetric=a" in namespace "shop" matches no PredictedMetric: the namespace has none`,
		},
		{
			name: "no match", held: []snapshot.Snapshot{servingtest.Healthy("b", "x"), servingtest.Healthy("a", "x")},
			selector: "predictedmetric=c",
			class:    NotFound, reason: ReasonNotFound,
			message: `the selector "predictedmetric=c" in namespace "shop" matches no PredictedMetric: the namespace has a, b; the labels to select by are predictedmetric, kind and target`,
		},
		{
			name: "no match among many", held: many(8), selector: "target=none",
			class: NotFound, reason: ReasonNotFound,
			message: `the selector "target=none" in namespace "shop" matches no PredictedMetric: the namespace has m-0000, m-0001, m-0002, m-0003, m-0004, 3 more; the labels to select by are predictedmetric, kind and target`,
		},
		{
			name: "several", held: []snapshot.Snapshot{servingtest.Healthy("b", "x"), servingtest.Healthy("a", "x")},
			selector: "target=x",
			class:    Invalid, reason: ReasonAmbiguous,
			message: `the selector "target=x" in namespace "shop" matches 2 PredictedMetrics (a, b), and an HPA would add their values up: select one with predictedmetric=NAME`,
		},
		{
			name: "many", held: many(8),
			class: Invalid, reason: ReasonAmbiguous,
			message: `the empty selector in namespace "shop" matches 8 PredictedMetrics (m-0000, m-0001, m-0002, m-0003, m-0004, 3 more), and an HPA would add their values up: select one with predictedmetric=NAME`,
		},
		{
			name: "dry run", held: shop(func(s *snapshot.Snapshot) { s.DryRun = true }),
			class: notNow, reason: ReasonDryRun,
			message: "PredictedMetric shop/checkout-elu: spec.dryRun is true, so no value is served; set it to false to have its forecast acted on" + more,
		},
		{
			name:  "dry run without a forecast",
			held:  shop(func(s *snapshot.Snapshot) { s.DryRun, s.NewestSample = true, time.Time{} }),
			class: notNow, reason: ReasonDryRun,
			message: "PredictedMetric shop/checkout-elu: spec.dryRun is true, so no value is served; set it to false to have its forecast acted on" + more,
		},
		{
			name: "not joined yet", held: shop(func(s *snapshot.Snapshot) {
				s.Combined = snapshot.Combined{Metrics: 1, Undecided: []string{"checkout-elu"}}
			}),
			metric: Replicas, class: notNow, reason: ReasonNoForecast,
			message: "PredictedMetric shop/checkout-elu: the number of replicas is not decided yet" + more,
		},
		{
			name: "no samples", held: shop(func(s *snapshot.Snapshot) { s.NewestSample = time.Time{} }),
			class: notNow, reason: "WaitingForSamples",
			message: "PredictedMetric shop/checkout-elu: there is no forecast: no sample has been read yet" + more,
		},
		{
			name: "no forecast", held: shop(func(s *snapshot.Snapshot) {
				s.Err = &snapshot.Unavailable{Reason: snapshot.WarmingUp, Message: "3 of 4 s have been read"}
			}),
			class: notNow, reason: "WarmingUp",
			message: "PredictedMetric shop/checkout-elu: there is no forecast: 3 of 4 s have been read" + more,
		},
		{
			name:  "no forecast for another reason",
			held:  shop(func(s *snapshot.Snapshot) { s.Err = errors.New("it broke") }),
			class: notNow, reason: ReasonNoForecast,
			message: "PredictedMetric shop/checkout-elu: there is no forecast: it broke" + more,
		},
		{
			name: "found stale by the forecaster", held: shop(func(s *snapshot.Snapshot) {
				s.Err = &snapshot.Unavailable{Reason: snapshot.Stale, Message: "the newest sample is 42.117s old"}
				s.NewestSample = servingtest.Now.Add(-42 * time.Second)
			}),
			class: notNow, reason: "Stale",
			message: "PredictedMetric shop/checkout-elu: the newest sample is over 30s old (2026-03-01T11:59:18Z), staleAfter is 30s" + more,
		},
		{
			name:  "found stale here",
			held:  shop(func(s *snapshot.Snapshot) { s.NewestSample = servingtest.Now.Add(-30*time.Second - 1) }),
			class: notNow, reason: "Stale",
			message: "PredictedMetric shop/checkout-elu: the newest sample is over 30s old (2026-03-01T11:59:29Z), staleAfter is 30s" + more,
		},
		{
			name: "the forecaster hangs", held: shop(func(s *snapshot.Snapshot) {
				s.At, s.NewestSample = servingtest.Now.Add(-3*time.Minute), servingtest.Now.Add(-3*time.Minute-time.Second)
			}),
			class: notNow, reason: "Stale",
			message: "PredictedMetric shop/checkout-elu: the newest forecast is over 2m old (2026-03-01T11:57:00Z), staleAfter is 30s" + more,
		},
		{
			name: "the forecaster hangs on samples from the future", held: shop(func(s *snapshot.Snapshot) {
				s.At, s.NewestSample = servingtest.Now.Add(-31*time.Second), servingtest.Now.Add(time.Hour)
			}),
			class: notNow, reason: "Stale",
			message: "PredictedMetric shop/checkout-elu: the newest forecast is over 30s old (2026-03-01T11:59:29Z), staleAfter is 30s" + more,
		},
		{
			name: "no ready pods", held: shop(func(s *snapshot.Snapshot) { s.Ready = 0 }), metric: Load,
			class: notNow, reason: "NoReadyPods",
			message: "PredictedMetric shop/checkout-elu: Deployment checkout has no ready pod to divide the load by; predicted_load_total with a target of type AverageValue needs none" + more,
		},
		{
			name: "too large", held: shop(func(s *snapshot.Snapshot) { s.Forecast.ServedLoad = 1e300 }), metric: LoadTotal,
			class: Internal, reason: ReasonOutOfRange,
			message: "PredictedMetric shop/checkout-elu: predicted_load_total cannot be expressed in milli-units: the load 1e+300 must be a number up to 4611686018427387; scale the metric",
		},
	} {
		metrics := []string{c.metric}
		if c.metric == "" {
			metrics = []string{LoadTotal, Load, Replicas}
		}
		for _, metric := range metrics {
			t.Run(c.name+"/"+metric, func(t *testing.T) {
				item, err := read(servingtest.NewMemory(c.held...), metric, c.selector)
				require.Zero(t, item)
				require.EqualError(t, err, c.message)
				e := errorOf(t, err)
				assert.Equal(t, c.class, e.Class)
				assert.Equal(t, c.reason, e.Reason)
				assert.Contains(t, Reasons(), c.reason)
				if c.class == NotFound || c.class == Invalid {
					assert.Empty(t, e.Name)
				} else {
					assert.Equal(t, "checkout-elu", e.Name)
				}
			})
		}
	}
}

func TestServesSamplesUpToStaleAfter(t *testing.T) {
	s := servingtest.Changed(servingtest.Healthy("a", "x"),
		func(s *snapshot.Snapshot) { s.NewestSample = servingtest.Now.Add(-s.StaleAfter) })
	_, err := read(servingtest.NewMemory(s), LoadTotal, "")
	assert.NoError(t, err)
}

func TestCheck(t *testing.T) {
	s := servingtest.Healthy("a", "x")
	require.NoError(t, Check(&s, servingtest.Now))
	s.NewestSample = servingtest.Now.Add(time.Hour)
	require.NoError(t, Check(&s, servingtest.Now), "the clock of a pod may be ahead")
	assert.Equal(t, "Stale", errorOf(t, Check(&s, servingtest.Now.Add(time.Minute))).Reason)
	s.Err = &snapshot.Unavailable{Reason: snapshot.BadSamples, Message: "NaN"}
	assert.Equal(t, "BadSamples", errorOf(t, Check(&s, servingtest.Now)).Reason)
}

func TestValueOfUnknownMetric(t *testing.T) {
	s := servingtest.Healthy("a", "x")
	_, err := Value("made-up", &s)
	assert.Equal(t, ReasonUnknownMetric, errorOf(t, err).Reason)
}

func TestTargets(t *testing.T) {
	for threshold, milli := range map[float64]int64{0.7: 700, 0.007: 7, 0.1 + 0.2: 300,
		0.0001: 1, 1e6: 1e9, 12.3456: 12346} {
		s := servingtest.Changed(servingtest.Healthy("checkout-elu", "checkout"), func(s *snapshot.Snapshot) {
			s.Threshold, s.Err = threshold, &snapshot.Unavailable{Reason: snapshot.Stale}
		})
		for metric, want := range map[string]int64{LoadTotal: milli, Load: milli, Replicas: 1000} {
			got, err := Target(metric, &s)
			require.NoError(t, err, "it needs no forecast")
			assert.Equal(t, want, got, "%s of %v", metric, threshold)
		}
	}
	_, err := Target("requests", &snapshot.Snapshot{})
	assert.Equal(t, NotFound, errorOf(t, err).Class)
}

func TestTargetsOfSpecsThatHaveNone(t *testing.T) {
	rejected := servingtest.Changed(servingtest.Healthy("checkout-elu", "checkout"), func(s *snapshot.Snapshot) {
		s.Threshold, s.Err = 0, &snapshot.Unavailable{Reason: snapshot.InvalidSpec,
			Message: "spec.window: 1s: must be longer"}
	})
	endless := servingtest.Changed(servingtest.Healthy("endless", "checkout"),
		func(s *snapshot.Snapshot) { s.Threshold = 1e300 })
	m := servingtest.NewMemory(rejected, endless)
	for name, want := range map[string]Error{
		"checkout-elu": {Class: Unavailable, Reason: "InvalidSpec",
			Message: "PredictedMetric shop/checkout-elu: there is no target: spec.window: 1s: must be longer"},
		"endless": {Class: Internal, Reason: ReasonOutOfRange,
			Message: "PredictedMetric shop/endless: predicted_load_total cannot be expressed in milli-units: the threshold 1e+300"},
		"other": {Class: NotFound, Reason: ReasonNotFound, Message: "matches no PredictedMetric"},
	} {
		_, err := ReadTarget(m, Query{Namespace: "shop", Selector: ByName(name), Metric: LoadTotal,
			Now: servingtest.Now})
		got := errorOf(t, err)
		assert.Equal(t, want.Class, got.Class, name)
		assert.Equal(t, want.Reason, got.Reason, name)
		assert.Contains(t, got.Message, want.Message, name)
	}
}

func TestReasonsAreUnique(t *testing.T) {
	all := Reasons()
	slices.Sort(all)
	assert.Equal(t, slices.Compact(slices.Clone(all)), all)
}

func TestOnlyLoadPerPodNeedsReadyPods(t *testing.T) {
	m := servingtest.NewMemory(servingtest.Changed(servingtest.Healthy("a", "x"),
		func(s *snapshot.Snapshot) { s.Ready = 0 }))
	for _, metric := range []string{LoadTotal, Replicas} {
		item, err := read(m, metric, "")
		require.NoError(t, err)
		assert.Positive(t, item.Milli)
	}
}

func TestOnlyReplicasNeedTheScale(t *testing.T) {
	m := servingtest.NewMemory(servingtest.Changed(servingtest.Healthy("a", "x"),
		func(s *snapshot.Snapshot) { s.ReplicasLost = s.At.Add(-time.Hour) }))
	for _, metric := range []string{LoadTotal, Load} {
		_, err := read(m, metric, "")
		require.NoError(t, err)
	}
	_, err := read(m, Replicas, "")
	require.ErrorContains(t, err, "the scale of Deployment x has been unreadable since")
	require.ErrorContains(t, err, "predicted_load_total does not need it")
}

// A message that changed with each read would rewrite the status of the HPA.
func TestMessagesOfStaleDataRarelyChange(t *testing.T) {
	now := servingtest.Now
	m := servingtest.NewMemory(servingtest.Healthy("a", "x"))
	messages := map[string]bool{}
	for ; now.Before(servingtest.Now.Add(9 * time.Minute)); now = now.Add(time.Second) {
		if _, err := Read(m, Query{Namespace: "shop", Selector: ByName("a"), Metric: LoadTotal, Now: now}); err != nil {
			messages[err.Error()] = true
		}
	}
	assert.Len(t, messages, 5) // the sample over 30s old, then the forecast over 30s, 60s, 2m and 5m
}

func TestCoarse(t *testing.T) {
	for age, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 4999 * time.Millisecond: "2s", 59 * time.Second: "30s", 2 * time.Minute: "2m",
		time.Hour - 1: "30m", 5 * time.Hour: "3h", 1000 * time.Hour: "24h",
	} {
		assert.Equal(t, want, coarse(age), age)
	}
}

func many(n int) []snapshot.Snapshot {
	list := make([]snapshot.Snapshot, n)
	for i := range list {
		list[i] = servingtest.Healthy(fmt.Sprintf("m-%04d", i), fmt.Sprintf("t-%04d", i))
	}
	return list
}

package keda

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/adapter/serving/servingtest"
)

func fixed() time.Time { return servingtest.Now }

func allKnown() error { return nil }

func newScaler(snapshots ...snapshot.Snapshot) (*Scaler, *servingtest.Memory) {
	memory := servingtest.NewMemory(snapshots...)
	return NewScaler(memory, allKnown, fixed), memory
}

// refTo is a ScaledObject shop/checkout, with metadata in pairs.
func refTo(metadata ...string) *externalscaler.ScaledObjectRef {
	ref := &externalscaler.ScaledObjectRef{Namespace: "shop", Name: "checkout",
		ScalerMetadata: map[string]string{"scalerAddress": "foresail-keda.foresail-system.svc:9600"}}
	for i := 0; i < len(metadata); i += 2 {
		ref.ScalerMetadata[metadata[i]] = metadata[i+1]
	}
	return ref
}

// loaded has a load for which a number of instances is required.
func loaded(instances float64) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		s.Forecast.Required, s.Forecast.ServedLoad = instances, s.Threshold*instances
	}
}

func withoutForecast(reason snapshot.Reason) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) { s.Err = &snapshot.Unavailable{Reason: reason, Message: "because"} }
}

func inDryRun(s *snapshot.Snapshot) { s.DryRun = true }

func assertStatus(t *testing.T, err error, code codes.Code, message string) {
	t.Helper()
	require.Error(t, err)
	assert.Equal(t, code, status.Code(err), err)
	assert.Contains(t, status.Convert(err).Message(), message)
}

func TestMetadataIsRefusedByName(t *testing.T) {
	s, _ := newScaler(servingtest.Healthy("checkout", "checkout"))
	for name, test := range map[string]struct {
		ref  *externalscaler.ScaledObjectRef
		want string
	}{
		"unknown key": {refTo("predictedmetric", "x"),
			`metadata.predictedmetric: "x": must be left out: a trigger has predictedMetric, metric and activation`},
		"threshold": {refTo("threshold", "1"), `metadata.threshold: "1": must be left out`},
		"a variable": {refTo("predictedMetricFromEnv", "other"),
			`metadata.predictedMetricFromEnv: "other": must be left out: write the value itself, as predictedMetric`},
		"another variable": {refTo("somethingFromEnv", "x"), `metadata.somethingFromEnv: "x": must be left out`},
		"secret": {refTo("tlsClientKey", "PRIVATE"),
			`metadata.tlsClientKey: "...": must be left out, as KEDA does not read it there`},
		"unknown metric": {refTo("metric", "load"),
			`metadata.metric: "load": must be predicted_load_total or predicted_replicas`},
		"predicted_load": {refTo("metric", "predicted_load"),
			`must be predicted_load_total or predicted_replicas: predicted_load needs a target of type Value, which a scaler cannot ask for`},
		"empty metric": {refTo("metric", ""), `metadata.metric: ""`},
		"activation":   {refTo("activation", "many"), `metadata.activation: "many": must be a number, 0 or more`},
		"negative":     {refTo("activation", "-1"), `metadata.activation: "-1"`},
		"NaN":          {refTo("activation", "NaN"), `metadata.activation: "NaN"`},
		"infinite":     {refTo("activation", "Inf"), `metadata.activation: "Inf"`},
		"too large":    {refTo("activation", "1e999"), `metadata.activation: "1e999"`},
		"name": {refTo("predictedMetric", "Checkout"),
			`metadata.predictedMetric: "Checkout": must be the name of a PredictedMetric`},
		"empty name":       {refTo("predictedMetric", ""), `metadata.predictedMetric: ""`},
		"namespace":        {&externalscaler.ScaledObjectRef{Name: "checkout"}, `namespace: ""`},
		"nothing":          {&externalscaler.ScaledObjectRef{}, `namespace: ""`},
		"a long key":       {refTo(strings.Repeat("é", 10_000), strings.Repeat("x", 10_000)), `..."`},
		"first by name":    {refTo("zzz", "1", "aaa", "2"), "metadata.aaa"},
		"no ScaledObject":  {nil, `namespace: ""`},
		"not even a label": {&externalscaler.ScaledObjectRef{Namespace: "a/b", Name: "c"}, `namespace: "a/b"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.GetMetricSpec(t.Context(), test.ref)
			assertStatus(t, err, codes.InvalidArgument, test.want)
			assert.Less(t, len(err.Error()), 600)
			_, err = s.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: test.ref})
			assertStatus(t, err, codes.InvalidArgument, test.want)
			_, err = s.IsActive(t.Context(), test.ref)
			assertStatus(t, err, codes.InvalidArgument, test.want)
			assertStatus(t, s.StreamIsActive(test.ref, nil), codes.InvalidArgument, test.want)
			assertStatus(t, s.StreamMetricSpec(test.ref, nil), codes.InvalidArgument, test.want)
		})
	}
}

func TestMetadataOfKEDAIsAccepted(t *testing.T) {
	s, _ := newScaler(servingtest.Healthy("elu", "checkout"))
	_, err := s.GetMetricSpec(t.Context(),
		refTo("predictedMetric", "elu", "metric", "predicted_replicas", "activation", "0.5",
			"enableTLS", "true", "unsafeSsl", "false"))
	require.NoError(t, err)
}

// assertRead checks that every supported KEDA makes these milli-units of a number.
func assertRead(t *testing.T, milli int64, v float64, name string) {
	t.Helper()
	assert.Equal(t, milli, int64(v*1000), "%s: KEDA 2.17 to 2.19 truncate", name)
	q := resource.MustParse(fmt.Sprintf("%.3f", v))
	assert.Equal(t, milli, q.MilliValue(), "%s: later ones round", name)
}

// TestEveryKEDAReadsTheSameMilliUnits has every threshold of up to 20 with three decimals, 0.8% of which came out a
// milli-unit lower.
func TestEveryKEDAReadsTheSameMilliUnits(t *testing.T) {
	for milli := range int64(20_000) {
		assertRead(t, milli, numberOf(milli), fmt.Sprint(milli))
	}
	for milli := int64(1); milli < 1<<50; milli = milli*3 + 1 {
		assertRead(t, milli, numberOf(milli), fmt.Sprint(milli))
	}
}

// TestReplicasStayAtAnyThreshold has the HPA divide what KEDA 2.17 to 2.19 make of a value and of its target, which
// must not order one replica more each time.
func TestReplicasStayAtAnyThreshold(t *testing.T) {
	for milli := int64(1); milli < 1<<52; milli = milli*5/4 + 1 {
		for _, replicas := range []float64{1, 7, 150} {
			published := servingtest.Changed(servingtest.Healthy("checkout", "checkout"), func(s *snapshot.Snapshot) {
				s.Threshold = float64(milli) / 1000
				loaded(replicas)(s)
			})
			s, _ := newScaler(published)
			spec, err := s.GetMetricSpec(t.Context(), refTo())
			require.NoError(t, err)
			got, err := s.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: refTo()})
			require.NoError(t, err)
			usage, target := int64(got.MetricValues[0].MetricValueFloat*1000), int64(spec.MetricSpecs[0].TargetSizeFloat*1000)
			assert.InDelta(t, replicas, math.Ceil(float64(usage)/float64(target)), 0, "threshold %d milli-units", milli)
		}
	}
}

// TestValuesEqualThoseOfExternalMetrics compares the values for KEDA with those of external metrics, to the digit.
func TestValuesEqualThoseOfExternalMetrics(t *testing.T) {
	for _, threshold := range []float64{0.001, 0.007, 0.0001, 0.57, 0.7, 0.1 + 0.2, 1, 1.001, 12.3456, 1e6,
		123456.789} {
		for _, instances := range []float64{0, 0.0004, 0.5, 1, 1.0000001, 7.77, 14.27, 333.3, 98765.4} {
			published := servingtest.Changed(servingtest.Healthy("checkout", "checkout"), func(s *snapshot.Snapshot) {
				s.Threshold = threshold
				loaded(instances)(s)
				s.Combined.Desired = int(math.Ceil(instances))
			})
			s, memory := newScaler(published)
			for _, metric := range []string{serving.LoadTotal, serving.Replicas} {
				name := fmt.Sprintf("%s of %v × %v", metric, instances, threshold)
				item, err := serving.Read(memory,
					serving.Query{Namespace: "shop", Selector: serving.ByName("checkout"), Metric: metric,
						Now: fixed()})
				require.NoError(t, err, name)
				target, err := serving.Target(metric, &published)
				require.NoError(t, err, name)

				got, err := s.GetMetrics(t.Context(),
					&externalscaler.GetMetricsRequest{ScaledObjectRef: refTo("metric", metric), MetricName: metric})
				require.NoError(t, err, name)
				require.Len(t, got.MetricValues, 1)
				assertRead(t, item.Milli, got.MetricValues[0].MetricValueFloat, name)
				assert.Zero(t, got.MetricValues[0].MetricValue, "it would be rounded")

				spec, err := s.GetMetricSpec(t.Context(), refTo("metric", metric))
				require.NoError(t, err, name)
				require.Len(t, spec.MetricSpecs, 1)
				assert.Equal(t, metric, spec.MetricSpecs[0].MetricName)
				assertRead(t, target, spec.MetricSpecs[0].TargetSizeFloat, name)
				assert.Zero(t, spec.MetricSpecs[0].TargetSize, "it would be rounded")
			}
		}
	}
}

func TestDefaultsOfATrigger(t *testing.T) {
	s, _ := newScaler(servingtest.Healthy("checkout", "checkout"))
	spec, err := s.GetMetricSpec(t.Context(), refTo())
	require.NoError(t, err)
	assert.Equal(t, "predicted_load_total", spec.MetricSpecs[0].MetricName)
	assert.InDelta(t, 0.7, spec.MetricSpecs[0].TargetSizeFloat, 0.0005)
	got, err := s.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: refTo()})
	require.NoError(t, err)
	assert.InDelta(t, 10.01, got.MetricValues[0].MetricValueFloat, 0.0005)
}

// TestSpecsNeedNoSamples is about KEDA dropping a metric from the HPA whose target it cannot get.
func TestSpecsNeedNoSamples(t *testing.T) {
	for _, reason := range snapshot.Reasons() {
		s, _ := newScaler(servingtest.Changed(servingtest.Healthy("checkout", "checkout"), withoutForecast(reason)))
		spec, err := s.GetMetricSpec(t.Context(), refTo())
		require.NoError(t, err, reason)
		assert.InDelta(t, 0.7, spec.MetricSpecs[0].TargetSizeFloat, 0.0005)
		_, err = s.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: refTo()})
		assertStatus(t, err, codes.Unavailable, "PredictedMetric shop/checkout: ")
	}
}

// TestSpecsOfRejectedPredictedMetrics has snapshots as they are published then, without a threshold.
// In dry run the HPA of a ScaledObject has its metric and reads an error, so that it keeps its replicas.
func TestDryRunHasATargetAndNoValue(t *testing.T) {
	s, _ := newScaler(servingtest.Changed(servingtest.Healthy("checkout", "checkout"), inDryRun))
	spec, err := s.GetMetricSpec(t.Context(), refTo())
	require.NoError(t, err)
	assert.InDelta(t, 0.7, spec.MetricSpecs[0].TargetSizeFloat, 0.0005,
		"the threshold of the spec, which is no forecast")
	for _, metric := range []string{serving.LoadTotal, serving.Replicas} {
		_, err = s.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: refTo("metric", metric)})
		assertStatus(t, err, codes.Unavailable, "PredictedMetric shop/checkout: spec.dryRun is true")
		_, err = s.IsActive(t.Context(), refTo("metric", metric))
		assertStatus(t, err, codes.Unavailable, "PredictedMetric shop/checkout: spec.dryRun is true")
	}
}

func TestSpecsOfRejectedPredictedMetrics(t *testing.T) {
	s, _ := newScaler(servingtest.Changed(servingtest.Healthy("checkout", "checkout"), func(s *snapshot.Snapshot) {
		s.Threshold = 0
		withoutForecast(snapshot.InvalidSpec)(s)
	}))
	_, err := s.GetMetricSpec(t.Context(), refTo())
	assertStatus(t, err, codes.Unavailable, "PredictedMetric shop/checkout: there is no target: because")
	spec, err := s.GetMetricSpec(t.Context(), refTo("metric", "predicted_replicas"))
	require.NoError(t, err, "its target is always the same")
	assert.InDelta(t, 1, spec.MetricSpecs[0].TargetSizeFloat, 0.0005)
}

func TestErrorsHaveTheSentenceOfExternalMetrics(t *testing.T) {
	healthy := servingtest.Healthy("checkout", "checkout")
	for name, test := range map[string]struct {
		snapshot snapshot.Snapshot
		ref      *externalscaler.ScaledObjectRef
		metric   string
		code     codes.Code
	}{
		"stale": {servingtest.Changed(healthy, func(s *snapshot.Snapshot) {
			s.NewestSample = fixed().Add(-time.Hour)
		}), refTo(), serving.LoadTotal, codes.Unavailable},
		"no ready pods": {servingtest.Changed(healthy, withoutForecast(snapshot.NoReadyPods)), refTo(),
			serving.LoadTotal, codes.Unavailable},
		"no replicas": {servingtest.Changed(healthy, func(s *snapshot.Snapshot) {
			s.ReplicasLost = fixed().Add(-time.Hour)
		}), refTo("metric", "predicted_replicas"), serving.Replicas, codes.Unavailable},
		"too large": {servingtest.Changed(healthy, loaded(1e300)), refTo(), serving.LoadTotal, codes.Internal},
		"other name": {servingtest.Changed(healthy, func(s *snapshot.Snapshot) { s.Metric.Name = "other" }), refTo(),
			serving.LoadTotal, codes.NotFound},
		"other space": {servingtest.Changed(healthy, func(s *snapshot.Snapshot) { s.Metric.Namespace = "other" }),
			refTo(),
			serving.LoadTotal, codes.NotFound},
		"forecaster off": {servingtest.Changed(healthy, func(s *snapshot.Snapshot) { s.At = fixed().Add(-time.Hour) }),
			refTo(), serving.LoadTotal, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s, memory := newScaler(test.snapshot)
			_, want := serving.Read(memory,
				serving.Query{Namespace: "shop", Selector: serving.ByName("checkout"), Metric: test.metric,
					Now: fixed()})
			require.Error(t, want)
			_, err := s.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: test.ref})
			assertStatus(t, err, test.code, want.Error())
			_, err = s.IsActive(t.Context(), test.ref)
			assertStatus(t, err, test.code, want.Error())
		})
	}
}

func TestUnknownWhileStarting(t *testing.T) {
	s, _ := newScaler()
	_, err := s.GetMetricSpec(t.Context(), refTo())
	assertStatus(t, err, codes.NotFound,
		`the selector "predictedmetric=checkout" in namespace "shop" matches no PredictedMetric`)
	s.known = func() error { return errors.New("pods are not listed yet") }
	_, err = s.GetMetricSpec(t.Context(), refTo())
	assertStatus(t, err, codes.Unavailable, "does not know every PredictedMetric yet: pods are not listed yet")
}

func TestOnlyTheMetricOfTheTriggerIsAnswered(t *testing.T) {
	s, _ := newScaler(servingtest.Healthy("checkout", "checkout"))
	for _, name := range []string{"", "predicted_load_total", "PREDICTED_load_total"} {
		_, err := s.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: refTo(),
			MetricName: name})
		assert.NoError(t, err, name)
	}
	_, err := s.GetMetrics(t.Context(),
		&externalscaler.GetMetricsRequest{ScaledObjectRef: refTo(), MetricName: "predicted_replicas"})
	assertStatus(t, err, codes.InvalidArgument,
		`metricName: "predicted_replicas": must be predicted_load_total, the metric of the trigger`)
}

func TestIsActiveAboveActivation(t *testing.T) {
	for _, test := range []struct {
		instances  float64
		activation string
		want       bool
	}{
		{0, "0", false}, {0.0004, "0", true}, {10, "7", false}, {10.1, "7", true}, {10, "6.999", true},
	} {
		s, _ := newScaler(servingtest.Changed(servingtest.Healthy("checkout", "checkout"), loaded(test.instances)))
		got, err := s.IsActive(t.Context(), refTo("activation", test.activation))
		require.NoError(t, err)
		assert.Equal(t, test.want, got.Result, "%+v", test)
	}
}

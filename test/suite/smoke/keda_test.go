package smoke

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/test/env/stack"
)

// TestKEDA asks for a forecast as KEDA's operator does, and compares it with the one that the API
// server passes on.
func TestKEDA(t *testing.T) {
	t.Parallel()
	app := stack.App{
		Namespace: "keda", Name: "queue", Metric: "predicted_load_total", Replicas: 3, Min: 1, Max: 6,
		ServiceTime: 40 * time.Millisecond, Threshold: resource.MustParse("700m"),
	}
	// Constant, so that both doors soon have the same answer: three pods are needed.
	shared.Shares.Set(app.Namespace, app.Name, func() float64 { return 1.8 })
	deploy(t, app)

	connection, err := grpc.NewClient(kedaAddress, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	keda := externalscaler.NewExternalScalerClient(connection)
	trigger := &externalscaler.ScaledObjectRef{
		Name: app.Name, Namespace: app.Namespace, ScalerMetadata: map[string]string{"predictedMetric": app.Name},
	}
	spec, err := keda.GetMetricSpec(t.Context(), trigger)
	require.NoError(t, err)
	require.Len(t, spec.MetricSpecs, 1)
	assert.Equal(t, app.Threshold.MilliValue(), int64(spec.MetricSpecs[0].TargetSizeFloat*1000),
		"thousandths, cut off as KEDA does")
	active, err := keda.IsActive(t.Context(), trigger)
	require.NoError(t, err)
	assert.True(t, active.Result)

	// What is served is the load that justifies the replicas: their number times the threshold.
	want := 3 * app.Threshold.AsApproximateFloat64()
	until(t, "both doors to serve the load of three pods", func() error {
		answer, err := keda.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{
			ScaledObjectRef: trigger, MetricName: spec.MetricSpecs[0].MetricName,
		})
		if err != nil {
			return err
		}
		served, err := stack.ReadMetric(externalMetrics(t), app)
		if err != nil {
			return err
		}
		const rounding = 0.001 // the metrics API serves thousandths
		fromKEDA := answer.MetricValues[0].MetricValueFloat
		return all(fmt.Sprintf("KEDA reads %v and the HPA %v, not %v", fromKEDA, served, want),
			math.Abs(fromKEDA-want) <= rounding, math.Abs(served-want) <= rounding)
	})
}

package e2e

import (
	"context"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/test/stack"
)

// watchAges asks the adapter several times a second how old the newest sample is behind what it serves for each
// PredictedMetric of a namespace, until ctx ends. It returns seconds by name. The items of the external metric have the
// same time, but in whole seconds.
func watchAges(ctx context.Context, namespace string) (map[string][]float64, error) {
	ages := map[string][]float64{}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ages, nil
		case <-ticker.C:
		}
		families, err := telemetry(ctx, adapter)
		if ctx.Err() != nil {
			return ages, nil
		}
		if err != nil {
			return ages, err
		}
		served := values(families["foresail_forecast_available"], namespace)
		for name, age := range values(families["foresail_sample_age_seconds"], namespace) {
			if served[name] == 1 {
				ages[name] = append(ages[name], age)
			}
		}
	}
}

// telemetry reads /metrics of an adapter.
func telemetry(ctx context.Context, a *stack.Adapter) (map[string]*dto.MetricFamily, error) {
	_, body, err := a.Get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(body))
}

// values returns those of a family's series of a namespace, by PredictedMetric.
func values(family *dto.MetricFamily, namespace string) map[string]float64 {
	out := map[string]float64{}
	for _, series := range family.GetMetric() {
		labels := map[string]string{}
		for _, label := range series.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["namespace"] == namespace {
			out[labels["predictedmetric"]] = series.GetGauge().GetValue()
		}
	}
	return out
}

package e2e

import (
	"context"
	"time"

	"github.com/foresail/foresail/test/env/foresail"
)

// watchAges asks the adapter several times a second how old the newest sample is behind what it
// serves for each PredictedMetric of a namespace, until ctx ends. It returns seconds by name. The
// items of the external metric have the same time, but in whole seconds.
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
		families, err := adapter.Metrics(ctx)
		if ctx.Err() != nil {
			return ages, nil
		}
		if err != nil {
			return ages, err
		}
		served := values(families, "foresail_forecast_available", namespace)
		for name, age := range values(families, "foresail_sample_age_seconds", namespace) {
			if served[name] == 1 {
				ages[name] = append(ages[name], age)
			}
		}
	}
}

// values returns those of a name's series of a namespace, by PredictedMetric.
func values(families foresail.Families, name, namespace string) map[string]float64 {
	out := map[string]float64{}
	for _, series := range families.Find(name, "namespace", namespace) {
		out[foresail.Labels(series)["predictedmetric"]] = series.GetGauge().GetValue()
	}
	return out
}

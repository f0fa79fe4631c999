package main

import (
	"context"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/stack"
)

// forecasts reads what the adapter reports of applications: numbers from its metrics, decisions from the status.
type forecasts struct {
	adapter *stack.Adapter
	client  client.Client
}

func newForecasts(adapter *stack.Adapter, config *rest.Config) (*forecasts, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	return &forecasts{adapter: adapter, client: c}, err
}

// watch brings the board up to date each second until ctx ends. What cannot be read is shown as unknown.
func (f *forecasts) watch(ctx context.Context, apps []stack.App, b *board) {
	// Decisions have times in whole seconds. Those from before the load are about no load at all.
	begun := time.Now().Truncate(time.Second).Add(time.Second)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		families := f.metrics(ctx)
		for i, a := range apps {
			now := forecastOf(a, families)
			if d := f.decision(ctx, a); d != nil && !d.Time.Time.Before(begun) {
				now.decision, now.age = d, time.Since(d.Time.Time)
			}
			b.foresee(i, now)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (f *forecasts) metrics(ctx context.Context) map[string]*dto.MetricFamily {
	_, body, err := f.adapter.Get(ctx, "/metrics")
	if err != nil {
		return nil
	}
	return parseMetrics(body)
}

// parseMetrics returns nothing for what cannot be read.
func parseMetrics(text string) map[string]*dto.MetricFamily {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil
	}
	return families
}

func forecastOf(a stack.App, families map[string]*dto.MetricFamily) forecast {
	load, ok := gauge(a, families["foresail_predicted_load_per_instance"])
	horizon, also := gauge(a, families["foresail_horizon_seconds"])
	return forecast{known: ok && also, load: load, horizon: time.Duration(horizon * float64(time.Second))}
}

// gauge finds the value of an application's PredictedMetric.
func gauge(a stack.App, family *dto.MetricFamily) (float64, bool) {
	for _, m := range family.GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["namespace"] == a.Namespace && labels["predictedmetric"] == a.Name {
			return m.GetGauge().GetValue(), true
		}
	}
	return 0, false
}

// decision returns nil if there is none, or if it cannot be read.
func (f *forecasts) decision(ctx context.Context, a stack.App) *v1alpha1.LastDecision {
	var pm v1alpha1.PredictedMetric
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name}, &pm); err != nil {
		return nil
	}
	return pm.Status.LastDecision
}

package main

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/stack"
)

// forecasts reads what the adapter reports of applications: numbers from its metrics, decisions
// from the status.
type forecasts struct {
	adapter *stack.Adapter
	client  client.Client
}

func newForecasts(adapter *stack.Adapter, config *rest.Config) (*forecasts, error) {
	c, err := foresail.NewClient(config)
	return &forecasts{adapter: adapter, client: c}, err
}

// watch brings the board up to date each second until ctx ends. What cannot be read is shown as unknown.
func (f *forecasts) watch(ctx context.Context, apps []stack.App, b *board) {
	// Decisions have times in whole seconds. Those from before the load are about no load at all.
	begun := time.Now().Truncate(time.Second).Add(time.Second)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		families, _ := f.adapter.Metrics(ctx) // none, if they cannot be read
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

func forecastOf(a stack.App, families foresail.Families) forecast {
	load, ok := families.Gauge("foresail_predicted_load_per_instance", "namespace", a.Namespace, "predictedmetric",
		a.Name)
	horizon, also := families.Gauge("foresail_horizon_seconds", "namespace", a.Namespace, "predictedmetric", a.Name)
	return forecast{known: ok && also, load: load, horizon: time.Duration(horizon * float64(time.Second))}
}

// decision returns nil if there is none, or if it cannot be read.
func (f *forecasts) decision(ctx context.Context, a stack.App) *v1alpha1.LastDecision {
	var pm v1alpha1.PredictedMetric
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name}, &pm); err != nil {
		return nil
	}
	return pm.Status.LastDecision
}

package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"math"
	"slices"
	"text/template"
	"time"

	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/stack"
	"github.com/foresail/foresail/test/env/workload"
)

const (
	namespace = "live"
	appName   = "app"

	minPods, maxPods = 4, 20
	threshold        = 0.7
	// scrapeInterval is Prometheus': what KEDA reads is that old.
	scrapeInterval = 5 * time.Second
)

// forecastManifest has the PredictedMetric and its HPA.
const forecastManifest = "foresail.yaml"

//go:embed *.yaml
var manifests embed.FS

// scaler is one way to scale the application.
type scaler struct {
	name     string // as in the output of `foresail simulate`
	manifest string
	metric   string // of Foresail's, that the HPA reads
	// What has to run for it.
	foresail, metricsServer, prometheus, keda bool
}

// scalers are what is compared, in the order in which they are.
func scalers() []scaler {
	return []scaler{
		{name: "hpa-cpu", manifest: "cpu.yaml", metricsServer: true},
		{name: "keda", manifest: "keda.yaml", prometheus: true, keda: true},
		{name: "current", manifest: forecastManifest, metric: "predicted_load_total", foresail: true, prometheus: true},
		{name: "foresail-total", manifest: forecastManifest, metric: "predicted_load_total", foresail: true},
		{name: "foresail-load", manifest: forecastManifest, metric: "predicted_load", foresail: true},
		{name: "foresail-replicas", manifest: forecastManifest, metric: "predicted_replicas", foresail: true},
	}
}

// defaultScalers are those that are compared unless others are asked for.
func defaultScalers() []string {
	return []string{"hpa-cpu", "keda", "foresail-total", "foresail-replicas"}
}

// stage is what runs for one play of one scaler.
type stage struct {
	settings   settings
	binaries   binaries
	scaler     scaler
	stack      *stack.Stack
	prometheus string // its URL; "" without
	stops      []func() error
}

// deploy applies the application, starts what its scaler needs and waits until the HPA reads what
// it shall. It returns when the load is to begin, if that matters.
func (s *stage) deploy(ctx context.Context, p profile) (begins time.Time, err error) {
	steps := []func() error{
		func() error { return s.apply(ctx, "app.yaml") },
		func() error { return s.waitForPods(ctx, minPods) },
		func() error { return s.startSources(ctx) },
		func() error { return s.apply(ctx, s.scaler.manifest) },
		func() error { return s.waitForHPA(ctx) },
	}
	if p.recurs > 0 && s.scaler.foresail {
		// What Foresail finds when it starts is not what it would take from others later.
		steps[2], steps[3] = steps[3], func() error {
			if begins, err = s.remember(ctx, p); err != nil {
				return err
			}
			return s.startSources(ctx)
		}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return begins, err
		}
	}
	return begins, nil
}

// close ends what was started, in the reverse order.
func (s *stage) close() error {
	var errs []error
	for _, stop := range slices.Backward(s.stops) {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

func (s *stage) apply(ctx context.Context, file string) error {
	manifest, err := s.manifest(file)
	if err != nil {
		return err
	}
	_, err = s.stack.Cluster.Apply(ctx, manifest)
	return err
}

func (s *stage) manifest(file string) ([]byte, error) {
	parsed, err := template.ParseFS(manifests, file)
	if err != nil {
		return nil, err
	}
	var manifest bytes.Buffer
	err = parsed.Execute(&manifest, map[string]any{
		"Namespace": namespace, "Name": appName, "Min": minPods, "Max": maxPods,
		"WorkloadLabel": stack.WorkloadLabel, "ServiceTimeAnnotation": workload.ServiceTimeAnnotation,
		"ServiceTime": s.settings.serviceTime(), "Threshold": threshold, "Percent": math.Round(100 * threshold),
		"Metric": s.scaler.metric, "Utilization": stack.Utilization, "Prometheus": s.prometheus,
	})
	return manifest.Bytes(), err
}

// startSources starts what the scaler reads. It is there until close, and until ctx ends at the latest.
func (s *stage) startSources(ctx context.Context) error {
	if s.scaler.metricsServer {
		m, err := monitoring.StartMetricsServer(ctx, s.stack.Cluster, monitoring.MetricsServerOptions{
			Progress: s.settings.progress, Selector: stack.WorkloadLabel + "=true",
		})
		if err != nil {
			return err
		}
		s.stops = append(s.stops, m.Stop)
	}
	if s.scaler.prometheus {
		if err := s.startPrometheus(ctx); err != nil {
			return err
		}
	}
	if s.scaler.keda {
		return s.startKEDA(ctx)
	}
	if s.scaler.foresail {
		return s.startForesail(ctx)
	}
	return nil
}

func (s *stage) startPrometheus(ctx context.Context) error {
	p, err := monitoring.StartPrometheus(ctx, s.stack.Cluster, monitoring.PrometheusOptions{
		Progress: s.settings.progress, Selector: stack.WorkloadLabel + "=true", ScrapeInterval: scrapeInterval,
		// It finds new pods sooner than it does by default: what reads it shall not come off worse for that.
		ExtraArgs: []string{"--scrape.discovery-reload-interval=1s"},
	})
	if err != nil {
		return err
	}
	s.stops = append(s.stops, p.Stop)
	s.prometheus = p.URL
	ctx, cancel := withPatience(ctx)
	defer cancel()
	return p.WaitReady(ctx)
}

func (s *stage) startForesail(ctx context.Context) error {
	var flags []string
	if s.prometheus != "" {
		flags = append(flags, "--prometheus="+s.prometheus) // PredictedMetrics may query this server alone
	}
	adapter, err := s.stack.StartAdapter(ctx, "foresail", flags...)
	if err != nil {
		return err
	}
	ctx, cancel := withPatience(ctx)
	defer cancel()
	if err := adapter.WaitReady(ctx); err != nil {
		return err
	}
	return s.stack.Register(ctx, adapter)
}

// simulated is the name of the same scaler in the simulator.
func (s scaler) simulated() string {
	if s.name == "current" {
		return "keda"
	}
	return s.name
}

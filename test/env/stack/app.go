package stack

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/workload"
)

// WorkloadLabel marks the pods that the workload serves.
const WorkloadLabel = "test.foresail.dev/workload"

// Utilization is the metric of a pod for the share of its time that it is busy, 0 to 1.
const Utilization = "nodejs_eventloop_utilization"

// App is an application behind an HPA.
type App struct {
	Namespace, Name string
	Metric          string // that the HPA reads, such as predicted_load_total
	Reactive        bool   // forecast nothing: the HPA follows the present load

	// Source of the samples; the zero value reads the event loop utilization of the pods themselves.
	Source v1alpha1.Source
	// StaleAfter is that of the PredictedMetric; 0 leaves it to Foresail.
	StaleAfter time.Duration

	Replicas, Min, Max int
	ServiceTime        time.Duration // that a request holds a pod for
	Threshold          resource.Quantity
	// ScaleDownWindow is the HPA's stabilization window in seconds; 0 stands for the 30 that the
	// docs recommend, by TimeScale.
	ScaleDownWindow int

	// CPU is what a pod requests, such as 500m; "" for nothing.
	CPU string
	// NodeSelector is that of the pods.
	NodeSelector map[string]string
}

// Selector selects the pods of the application.
func (a App) Selector() string { return "app=" + a.Name }

//go:embed app.yaml
var appYAML string

var appTemplate = template.Must(template.New("app.yaml").Parse(appYAML))

// Deploy applies an application, and waits until its replicas are ready.
func (s *Stack) Deploy(ctx context.Context, a App) error {
	manifest, err := a.manifest(s.scale, s.ports, !s.oldest)
	if err != nil {
		return err
	}
	if _, err := s.Cluster.Apply(ctx, manifest); err != nil {
		return err
	}
	for {
		state, err := s.Look(ctx, a)
		if err != nil {
			return err
		}
		if state.Ready >= a.Replicas {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods of %s/%s are ready: %w", state.Ready, a.Replicas, a.Namespace, a.Name,
				context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (a App) manifest(scale int, ports podPorts, hasTolerance bool) ([]byte, error) {
	scaled := func(d time.Duration) time.Duration { return (d / time.Duration(scale)).Truncate(time.Millisecond) }
	if a.ScaleDownWindow == 0 {
		a.ScaleDownWindow = int(scaled(30 * time.Second).Seconds())
	}
	source := a.Source
	if source.Name() == "" {
		source.Pods = &v1alpha1.PodsSource{Port: intstr.FromString(workload.MetricsPortName), Metric: Utilization}
	}
	encoded, err := json.Marshal(source)
	if err != nil {
		return nil, err
	}
	var manifest bytes.Buffer
	err = appTemplate.Execute(&manifest, struct {
		App
		Ports                        podPorts
		Label, ServiceTimeAnnotation string
		Threshold, SourceJSON        string
		Scaled                       bool
		Startup, Redistribution      time.Duration
		HorizonMin, ReactionDelay    time.Duration
		PolicyPeriod                 int  // of the HPA, in seconds
		HasTolerance                 bool // of HPAs, which came with Kubernetes 1.35
	}{
		a, ports, WorkloadLabel, workload.ServiceTimeAnnotation, a.Threshold.String(), string(encoded),
		scale > 1, scaled(25 * time.Second), scaled(30 * time.Second),
		scaled(10 * time.Second), scaled(hpaPeriod), int(scaled(hpaPeriod).Seconds()), hasTolerance,
	})
	return manifest.Bytes(), err
}

// State is how an application stands.
type State struct {
	Replicas int // asked for
	Ready    int
	Desired  int // by the HPA
}

// Look reads the state of an application.
func (s *Stack) Look(ctx context.Context, a App) (State, error) {
	client := s.Cluster.Client()
	deployment, err := client.AppsV1().Deployments(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	if err != nil {
		return State{}, err
	}
	hpa, err := client.AutoscalingV2().HorizontalPodAutoscalers(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	if err != nil {
		return State{}, err
	}
	return State{
		Replicas: int(*deployment.Spec.Replicas), Ready: int(deployment.Status.ReadyReplicas),
		Desired: int(hpa.Status.DesiredReplicas),
	}, nil
}

package predictedmetric

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/instances"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/pods"
	"github.com/foresail/foresail/adapter/source/prometheus"
	"github.com/foresail/foresail/adapter/source/remotewrite"
	"github.com/foresail/foresail/adapter/source/resource"
	"github.com/foresail/foresail/api/v1alpha1"
)

// Source is what the reconciler needs of a source with configurations of type C, which reads fleets through F.
type Source[C, F any] interface {
	Set(key types.NamespacedName, c C, fleet F, sink source.Sink) error
	Remove(key types.NamespacedName)
}

// Sources is where samples come from. RemoteWrite is nil where nothing listens for it.
type Sources struct {
	Pods        Source[pods.Config, pods.Fleet]
	Prometheus  Source[prometheus.Config, prometheus.Fleet]
	RemoteWrite Source[remotewrite.Config, remotewrite.Fleet]
	Resource    Source[resource.Config, resource.Fleet]
}

var errNotListening = errors.New("no samples can be pushed to Foresail as it runs: it must be started with --remote-write-address")

// set has the one source that a spec names, defaults filled in, feed a sink, and no other.
func (s *Sources) set(key types.NamespacedName, spec *v1alpha1.PredictedMetricSpec, fleet *instances.Fleet, sink source.Sink) error {
	name := spec.Source.Name()
	s.remove(key, name)
	var err error
	switch of := &spec.Source; name {
	case "pods":
		err = s.Pods.Set(key, podsConfig(of.Pods), fleet, sink)
	case "prometheus":
		err = s.Prometheus.Set(key, prometheusConfig(of.Prometheus, spec), fleet, sink)
	case "remoteWrite":
		if err = errNotListening; s.RemoteWrite != nil {
			err = s.RemoteWrite.Set(key, remoteWriteConfig(of.RemoteWrite), fleet, sink)
		}
	case "resource":
		err = s.Resource.Set(key, resourceConfig(of.Resource), fleet, sink)
	}
	if err != nil {
		return fmt.Errorf("spec.source.%s: %w", name, err)
	}
	return nil
}

// remove ends what any source but one, if it is named, does for a PredictedMetric.
func (s *Sources) remove(key types.NamespacedName, but string) {
	if but != "pods" {
		s.Pods.Remove(key)
	}
	if but != "prometheus" {
		s.Prometheus.Remove(key)
	}
	if but != "remoteWrite" && s.RemoteWrite != nil {
		s.RemoteWrite.Remove(key)
	}
	if but != "resource" {
		s.Resource.Remove(key)
	}
}

func podsConfig(s *v1alpha1.PodsSource) pods.Config {
	return pods.Config{
		Port: s.Port, Path: s.Path, Metric: s.Metric, Type: source.Type(s.Type),
		MatchLabels: s.MatchLabels, Interval: s.Interval.Duration,
	}
}

func prometheusConfig(s *v1alpha1.PrometheusSource, spec *v1alpha1.PredictedMetricSpec) prometheus.Config {
	return prometheus.Config{
		Address: s.Address, Query: s.Query, PodLabel: s.PodLabel, NamespaceLabel: s.NamespaceLabel,
		Type: source.Type(s.Type), Interval: s.Interval.Duration, Window: max(spec.Window.Duration, s.Interval.Duration),
	}
}

func remoteWriteConfig(s *v1alpha1.RemoteWriteSource) remotewrite.Config {
	return remotewrite.Config{
		Metric: s.Metric, Type: source.Type(s.Type), PodLabel: s.PodLabel, NamespaceLabel: s.NamespaceLabel, MatchLabels: s.MatchLabels,
	}
}

func resourceConfig(s *v1alpha1.ResourceSource) resource.Config {
	return resource.Config{Name: string(s.Name), Container: s.Container, Interval: s.Interval.Duration}
}

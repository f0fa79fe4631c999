package controlplane

import (
	"context"
	"encoding/base64"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// AggregatedAPI is a group and version of the Kubernetes API that a server on this machine serves.
type AggregatedAPI struct {
	// Group and Version, such as external.metrics.k8s.io and v1beta1.
	Group, Version string
	// Port is where the server listens on 127.0.0.1.
	Port int
	// Namespace and Service name the Service that stands for the server; what is missing of them is
	// made. The server's certificate has to be for <Service>.<Namespace>.svc.
	Namespace, Service string
	// CABundle, in PEM, signs the server's certificate; nil stands for [Cluster.CA], which signs those of
	// [Cluster.ServingCertificate].
	CABundle []byte
}

// Name returns the name of the APIService, such as v1beta1.external.metrics.k8s.io.
func (a AggregatedAPI) Name() string { return a.Version + "." + a.Group }

// RegisterAggregated has the API server pass requests for a group and version on to a server on
// this machine. A Service or APIService that exists under these names, from manifests say, is
// pointed there. It does not wait for the server: [Cluster.WaitAggregated] does.
func (c *Cluster) RegisterAggregated(ctx context.Context, api AggregatedAPI) error {
	if api.CABundle == nil {
		api.CABundle = c.CA()
	}
	for _, object := range []map[string]any{api.namespace(), api.service(), api.apiService()} {
		if _, err := c.applyObject(ctx, &unstructured.Unstructured{Object: object}); err != nil {
			return fmt.Errorf("register %s: %w", api.Name(), err)
		}
	}
	return nil
}

func (a AggregatedAPI) namespace() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": a.Namespace},
	}
}

// service stands for this machine: the API server resolves it by the external name, not by endpoints.
func (a AggregatedAPI) service() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": a.Service, "namespace": a.Namespace},
		"spec":     map[string]any{"type": "ExternalName", "externalName": "localhost"},
	}
}

func (a AggregatedAPI) apiService() map[string]any {
	return map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": a.Name()},
		"spec": map[string]any{
			"group":                 a.Group,
			"version":               a.Version,
			"groupPriorityMinimum":  int64(100),
			"versionPriority":       int64(100),
			"caBundle":              base64.StdEncoding.EncodeToString(a.CABundle),
			"insecureSkipTLSVerify": false,
			"service":               map[string]any{"namespace": a.Namespace, "name": a.Service, "port": int64(a.Port)},
		},
	}
}

// WaitAggregated waits until the API server reports an aggregated API, by the name of its
// APIService, as available.
func (c *Cluster) WaitAggregated(ctx context.Context, name string) error {
	resource := c.dynamic.Resource(apiregistrationv1.SchemeGroupVersion.WithResource("apiservices"))
	return c.poll(ctx, "APIService "+name+" to be available", func(ctx context.Context) error {
		object, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var service apiregistrationv1.APIService
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &service); err != nil {
			return err
		}
		for _, condition := range service.Status.Conditions {
			if condition.Type != apiregistrationv1.Available {
				continue
			}
			if condition.Status == apiregistrationv1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("%s: %s", condition.Reason, condition.Message)
		}
		return fmt.Errorf("no condition yet")
	})
}

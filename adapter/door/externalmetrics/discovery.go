package externalmetrics

import (
	"errors"
	"fmt"
	"maps"
	"runtime"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	versionutil "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
	openapi "k8s.io/kube-openapi/pkg/common"
	custombeta1 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	custombeta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	"k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	coretypes "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"
	customtypes "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/custommetrics"
	externaltypes "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/externalmetrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
)

// listing is the provider of Foresail's metrics, and lists those of the second adapter after them.
type listing struct {
	*Provider
	second Second
}

// ListAllExternalMetrics implements provider.ExternalMetricsProvider.
func (l listing) ListAllExternalMetrics() []provider.ExternalMetricInfo {
	infos := l.Provider.ListAllExternalMetrics()
	for _, metric := range l.second.Metrics() {
		infos = append(infos, provider.ExternalMetricInfo{Metric: metric})
	}
	return infos
}

// addAggregatedDiscovery lists the metrics in the aggregated discovery document too. The library fills only the older
// documents, and the cluster's API server takes an aggregated one without the group for a group without resources.
func addAggregatedDiscovery(server *genericapiserver.GenericAPIServer, p provider.ExternalMetricsProvider) error {
	return addVersion(server, v1beta1.SchemeGroupVersion, provider.NewExternalMetricResourceLister(p))
}

// addCustomDiscovery does the same for custom metrics, which have two versions.
func addCustomDiscovery(server *genericapiserver.GenericAPIServer, p provider.CustomMetricsProvider) error {
	lister := provider.NewCustomMetricResourceLister(p)
	return errors.Join(addVersion(server, custombeta2.SchemeGroupVersion, lister),
		addVersion(server, custombeta1.SchemeGroupVersion, lister))
}

func addVersion(server *genericapiserver.GenericAPIServer, version schema.GroupVersion,
	lister discovery.APIResourceLister) error {
	resources, err := endpoints.ConvertGroupVersionIntoToDiscovery(lister.ListAPIResources())
	if err != nil {
		return fmt.Errorf("describe %s for discovery: %w", version, err)
	}
	for _, r := range resources {
		setVersion(r.ResponseKind, version)
		for _, s := range r.Subresources {
			setVersion(s.ResponseKind, version)
		}
	}
	server.AggregatedDiscoveryGroupManager.AddGroupVersion(version.Group, apidiscovery.APIVersionDiscovery{
		Version: version.Version, Resources: resources, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
	})
	return nil
}

// setVersion completes a kind that has a name. A resource that is there for its subresources alone
// has a kind without one.
func setVersion(kind *metav1.GroupVersionKind, version schema.GroupVersion) {
	if kind.Kind != "" {
		kind.Group, kind.Version = version.Group, version.Version
	}
}

// openAPIConfigs returns the configurations of the OpenAPI documents, version 2 and 3.
func openAPIConfigs(version string, custom bool) (*openapi.Config, *openapi.OpenAPIV3Config) {
	definitions := externalDefinitions
	if custom {
		definitions = allDefinitions
	}
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme)
	v2 := genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	v2.Info.Title, v2.Info.Version = serverName, version
	v3 := genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	v3.Info.Title, v3.Info.Version = serverName, version
	return v2, v3
}

// externalDefinitions returns the types of external metrics and of the endpoints that every API server has.
func externalDefinitions(ref openapi.ReferenceCallback) map[string]openapi.OpenAPIDefinition {
	all := coretypes.GetOpenAPIDefinitions(ref)
	maps.Copy(all, externaltypes.GetOpenAPIDefinitions(ref))
	return all
}

// allDefinitions returns those of custom metrics too.
func allDefinitions(ref openapi.ReferenceCallback) map[string]openapi.OpenAPIDefinition {
	all := externalDefinitions(ref)
	maps.Copy(all, customtypes.GetOpenAPIDefinitions(ref))
	return all
}

// build reports the version of this program at /version; features stay those of the library.
type build struct {
	basecompatibility.EffectiveVersion
	info version.Info
}

func newBuild(gitVersion string) build {
	info := version.Info{
		GitVersion: gitVersion, GoVersion: runtime.Version(), Compiler: runtime.Compiler,
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if v, err := versionutil.ParseGeneric(gitVersion); err == nil { // a build without a tag has none
		info.Major, info.Minor = fmt.Sprint(v.Major()), fmt.Sprint(v.Minor())
	}
	return build{EffectiveVersion: compatibility.DefaultBuildEffectiveVersion(), info: info}
}

// Info implements basecompatibility.EffectiveVersion.
func (b build) Info() *version.Info { return &b.info }

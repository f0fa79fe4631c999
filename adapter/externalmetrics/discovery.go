package externalmetrics

import (
	"fmt"
	"maps"
	"runtime"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	versionutil "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
	openapi "k8s.io/kube-openapi/pkg/common"
	"k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	coretypes "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"
	metrictypes "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/externalmetrics"
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
	resources, err := endpoints.ConvertGroupVersionIntoToDiscovery(provider.NewExternalMetricResourceLister(p).ListAPIResources())
	if err != nil {
		return fmt.Errorf("describe the external metrics for discovery: %w", err)
	}
	group := v1beta1.SchemeGroupVersion
	for _, r := range resources {
		r.ResponseKind.Group, r.ResponseKind.Version = group.Group, group.Version
	}
	server.AggregatedDiscoveryGroupManager.AddGroupVersion(group.Group, apidiscovery.APIVersionDiscovery{
		Version: group.Version, Resources: resources, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
	})
	return nil
}

// openAPI returns the configurations of the OpenAPI documents, version 2 and 3.
func openAPI(version string) (*openapi.Config, *openapi.OpenAPIV3Config) {
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme)
	v2 := genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	v2.Info.Title, v2.Info.Version = serverName, version
	v3 := genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	v3.Info.Title, v3.Info.Version = serverName, version
	return v2, v3
}

// definitions returns the types of the API and of the endpoints that every API server has.
func definitions(ref openapi.ReferenceCallback) map[string]openapi.OpenAPIDefinition {
	all := coretypes.GetOpenAPIDefinitions(ref)
	maps.Copy(all, metrictypes.GetOpenAPIDefinitions(ref))
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

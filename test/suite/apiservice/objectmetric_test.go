package apiservice

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	custommetrics "k8s.io/metrics/pkg/client/custom_metrics"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/stack"
)

const prometheusAdapters = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.custom.metrics.k8s.io}
spec:
  group: custom.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  caBundle: %s
  service: {namespace: monitoring, name: prometheus-adapter, port: 443}
`

// The HPA of a second target reads, as an Object metric, the PredictedMetric that the HPA of the
// application reads as an external one.
const follower = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: follower, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: follower}}
  template:
    metadata: {labels: {app: follower}}
    spec:
      containers: [{name: app, image: example.com/app}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: follower, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: follower}
  minReplicas: 2
  maxReplicas: 4
  metrics:
  - type: Object
    object:
      describedObject: {apiVersion: foresail.dev/v1alpha1, kind: PredictedMetric, name: checkout}
      metric: {name: predicted_load_total}
      target: {type: AverageValue, averageValue: 700m}
  behavior:
    scaleUp: {tolerance: "0", stabilizationWindowSeconds: 0}
    scaleDown: {stabilizationWindowSeconds: 30}
`

var predictedMetrics = schema.GroupKind{Group: "foresail.dev", Kind: "PredictedMetric"}

// customReader returns the client of the HPA controller.
func customReader(t *testing.T, config *rest.Config) custommetrics.CustomMetricsClient {
	t.Helper()
	config.QPS = -1
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	return custommetrics.NewForConfig(config, mapper, custommetrics.NewAvailableAPIsGetter(client))
}

func TestObjectMetric(t *testing.T) {
	_, err := shared.Cluster.Apply(t.Context(), []byte(machine),
		fmt.Appendf(nil, prometheusAdapters, encoded(shared.Cluster.CA())))
	require.NoError(t, err)
	require.NoError(t, foresail.Apply(t.Context(), shared.Cluster, "components/custom-metrics/rbac.yaml"))
	t.Cleanup(unregister(t))
	f := startFront(t)

	t.Run("Foresail does not start beside another server", func(t *testing.T) { startIsRefused(t, f) })
	require.NoError(t, services().Delete(t.Context(), "v1beta1.custom.metrics.k8s.io", metav1.DeleteOptions{}))
	r := start(t, "custom", f, "--custom-metrics")
	f.lead(r.secure)
	// It needs five replicas, and the HPAs allow four: what they show is not the threshold.
	shared.Shares.Set(app.Namespace, app.Name, func() float64 { return 3.5 })
	defer shared.Shares.Set(app.Namespace, app.Name, nil)
	read(t)
	t.Run("what is changed in them is put right", correctCustom)
	t.Run("both groups are discovered", discoverBoth)
	t.Run("HPAs read equal values through both", compareHPAs)
	t.Run("reads of the same moment are equal", compareReads)
	t.Run("only who may read it reads it", func(t *testing.T) {
		config, err := shared.Cluster.RESTConfigFor("stranger")
		require.NoError(t, err)
		_, err = customReader(t, config).NamespacedMetrics(app.Namespace).GetForObject(predictedMetrics, app.Name,
			app.Metric, labels.Everything())
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
	})
	t.Run("the groups go with the ClusterRoles", uninstallCustom)
}

// unregister returns what leaves the cluster to another test.
func unregister(t *testing.T) func() {
	return func() {
		ctx := context.Background()
		for _, name := range []string{name, "v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"} {
			if err := services().Delete(ctx, name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				assert.NoError(t, err)
			}
		}
		assert.NoError(t, shared.Cluster.Client().CoreV1().Secrets(foresail.Namespace).Delete(ctx, secret,
			metav1.DeleteOptions{}))
	}
}

func startIsRefused(t *testing.T, f *front) {
	own, _, err := foresail.SigningAdapterFlags(t.Context(), shared.Cluster)
	require.NoError(t, err)
	own = append(own, "--apiservice-service", fmt.Sprintf("%s:%d", foresail.ServiceName, f.port()), "--custom-metrics")
	p, err := foresail.Start(foresail.Options{Name: "refused", Binary: binary, Dir: folder(t, "refused"), Flags: own})
	require.NoError(t, err)
	select {
	case <-p.Ended():
	case <-time.After(patience):
		assert.NoError(t, p.Kill())
		t.Fatal("it runs")
	}
	assert.Contains(t, p.LogTail(),
		"--custom-metrics: the APIService v1beta1.custom.metrics.k8s.io leads to monitoring/prometheus-adapter, ")
	assert.Contains(t, p.LogTail(),
		"leave the flag out and have HPAs read external metrics, or remove that APIService first")
	_, err = services().Get(t.Context(), "v1beta2.custom.metrics.k8s.io", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

// correctCustom takes the authority out of both APIServices, without which the API server trusts no replica.
func correctCustom(t *testing.T) {
	for _, name := range []string{"v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"} {
		before, err := services().Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		_, err = services().Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"caBundle":null}}`),
			metav1.PatchOptions{})
		require.NoError(t, err)
		eventually(t, "the authority is there again", func(c *assert.CollectT) {
			now, err := services().Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(c, err)
			assert.Equal(c, before.Object["spec"], now.Object["spec"])
		})
	}
}

// discoverBoth discovers as kubectl does, and as old clients do.
func discoverBoth(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		eventually(t, fmt.Sprintf("discovery, legacy %v", legacy), func(c *assert.CollectT) {
			client, err := discovery.NewDiscoveryClientForConfig(shared.Cluster.RESTConfig())
			require.NoError(c, err)
			client.UseLegacyDiscovery = legacy
			groups, resources, err := client.ServerGroupsAndResources()
			require.NoError(c, err)
			for _, group := range groups {
				if group.Name == "custom.metrics.k8s.io" {
					assert.Equal(c, "v1beta2", group.PreferredVersion.Version)
				}
			}
			found := map[string][]string{}
			for _, list := range resources {
				if strings.HasPrefix(list.GroupVersion, "external.metrics.k8s.io/") ||
					strings.HasPrefix(list.GroupVersion, "custom.metrics.k8s.io/") {
					for _, r := range list.APIResources {
						found[list.GroupVersion] = append(found[list.GroupVersion], r.Name)
					}
				}
			}
			custom := []string{
				"predictedmetrics.foresail.dev/predicted_load_total", "predictedmetrics.foresail.dev/predicted_load",
				"predictedmetrics.foresail.dev/predicted_replicas",
			}
			assert.Len(c, found, 3)
			assert.ElementsMatch(c, []string{"predicted_load_total", "predicted_load", "predicted_replicas"},
				found["external.metrics.k8s.io/v1beta1"])
			assert.ElementsMatch(c, custom, found["custom.metrics.k8s.io/v1beta1"])
			assert.ElementsMatch(c, custom, found["custom.metrics.k8s.io/v1beta2"])
		})
	}
}

// compareHPAs has the HPA controller read one PredictedMetric through both groups, under a load
// that does not change.
func compareHPAs(t *testing.T) {
	_, err := shared.Cluster.Apply(t.Context(), []byte(follower))
	require.NoError(t, err)
	status := func(c *assert.CollectT, name string) autoscalingv2.HorizontalPodAutoscalerStatus {
		hpa, err := shared.Cluster.Client().AutoscalingV2().HorizontalPodAutoscalers(app.Namespace).Get(t.Context(),
			name, metav1.GetOptions{})
		require.NoError(c, err)
		require.Len(c, hpa.Status.CurrentMetrics, 1)
		return hpa.Status
	}
	var last string
	eventually(t, "both HPAs show the same", func(c *assert.CollectT) {
		external, object := status(c, app.Name), status(c, "follower")
		require.NotNil(c, external.CurrentMetrics[0].External)
		require.NotNil(c, object.CurrentMetrics[0].Object)
		require.NotNil(c, external.CurrentMetrics[0].External.Current.AverageValue)
		require.NotNil(c, object.CurrentMetrics[0].Object.Current.AverageValue)
		require.Equal(c, external.CurrentReplicas, object.CurrentReplicas)
		shown := object.CurrentMetrics[0].Object.Current.AverageValue
		require.EqualValues(c, app.Max, object.CurrentReplicas)
		assert.Greater(c, shown.MilliValue(), app.Threshold.MilliValue())
		assert.Equal(c, external.CurrentMetrics[0].External.Current.AverageValue.String(), shown.String())
		assert.Equal(c, external.DesiredReplicas, object.DesiredReplicas)
		last = shown.String()
	})
	t.Logf("both HPAs show %s a replica", last)
}

// compareReads reads through both groups while the load changes. A custom value between two equal
// external ones is of the same snapshot, as one is published each second at most.
func compareReads(t *testing.T) {
	shared.Shares.Set(app.Namespace, app.Name,
		func() float64 { return 3.1 + float64(time.Now().UnixMilli()%5000)/10000 })
	external, err := externalmetrics.NewForConfig(unlimited())
	require.NoError(t, err)
	custom := customReader(t, shared.Cluster.RESTConfig()).NamespacedMetrics(app.Namespace)
	readExternal := func(metric string) (string, error) {
		list, err := external.NamespacedMetrics(app.Namespace).List(metric,
			labels.SelectorFromSet(labels.Set{"predictedmetric": app.Name}))
		if err != nil {
			return "", err
		}
		return list.Items[0].Value.String(), nil
	}
	values := map[string]bool{}
	pairs := 0
	eventually(t, "values of many moments", func(c *assert.CollectT) {
		for _, metric := range []string{"predicted_load_total", "predicted_load", "predicted_replicas"} {
			began := time.Now()
			before, err := readExternal(metric)
			require.NoError(c, err)
			between, err := custom.GetForObject(predictedMetrics, app.Name, metric, labels.Everything())
			require.NoError(c, err)
			after, err := readExternal(metric)
			require.NoError(c, err)
			if before != after || time.Since(began) > time.Second {
				continue
			}
			pairs++
			values[metric+before] = true
			if got := between.Value.String(); got != before {
				t.Errorf("%s is %s as an external metric and %s as a custom one", metric, before, got)
			}
		}
		assert.Greater(c, pairs, 50)
		assert.Greater(c, len(values), 8)
	})
	t.Logf("%d pairs of %d values", pairs, len(values))
}

func unlimited() *rest.Config {
	config := shared.Cluster.RESTConfig()
	config.QPS = -1
	return config
}

// uninstallCustom deletes the ClusterRole of the component alone, under a running replica.
func uninstallCustom(t *testing.T) {
	require.NoError(t, shared.Cluster.Client().RbacV1().ClusterRoles().Delete(t.Context(), "foresail-custom-metrics",
		metav1.DeleteOptions{}))
	eventually(t, "the garbage collector removes the APIServices", func(c *assert.CollectT) {
		for _, version := range []string{"v1beta1", "v1beta2"} {
			_, err := services().Get(t.Context(), version+".custom.metrics.k8s.io", metav1.GetOptions{})
			assert.True(c, apierrors.IsNotFound(err), "%v", err)
		}
	})
	_, err := stack.ReadMetric(reader(t), app)
	assert.NoError(t, err, "external metrics are still there")
}

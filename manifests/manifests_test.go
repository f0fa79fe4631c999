// Package manifests_test holds the manifests to what the API server, and the manifests themselves,
// expect of them.
package manifests_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/crdtest"
)

// decoder refuses fields that a kind does not have.
var decoder = sync.OnceValues(func() (runtime.Decoder, error) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	return serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer(), nil
})

// load decodes every object in a folder.
func load(t *testing.T, folder string) []runtime.Object {
	t.Helper()
	var objects []runtime.Object
	for _, file := range files(t, folder) {
		objects = append(objects, loadFile(t, filepath.Join(folder, file))...)
	}
	return objects
}

// loadFile decodes every object in a file.
func loadFile(t *testing.T, path string) []runtime.Object {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return decode(t, path, data)
}

func decode(t *testing.T, what string, data []byte) []runtime.Object {
	t.Helper()
	strict, err := decoder()
	require.NoError(t, err)
	var objects []runtime.Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if foreign(document) {
			continue
		}
		object, _, err := strict.Decode(document, nil, nil)
		require.NoError(t, err, what)
		objects = append(objects, object)
	}
}

var foreignGroup = regexp.MustCompile(`(?m)^apiVersion: (cert-manager\.io|keda\.sh|monitoring\.coreos\.com)/`)

// foreign reports whether an object is of another project, whose types are not among this module's
// dependencies.
func foreign(document []byte) bool { return foreignGroup.Match(document) }

func files(t *testing.T, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	var names []string
	for _, path := range paths {
		if name := filepath.Base(path); name != "kustomization.yaml" {
			names = append(names, name)
		}
	}
	require.NotEmpty(t, names)
	return names
}

func one[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	found := all[T](objects)
	require.Len(t, found, 1)
	return found[0]
}

func all[T runtime.Object](objects []runtime.Object) []T {
	var found []T
	for _, object := range objects {
		if o, ok := object.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

func TestKustomizationsNameEveryFile(t *testing.T) {
	for _, folder := range []string{
		"crds", "base", "components/apiservice", "components/cert-manager", "components/mutual-tls",
		"components/nodepool", "components/simulated-nodes",
		"components/extender-rights", "components/extender", "components/keda", "components/custom-metrics",
		"components/forward", "components/capacity-buffer", "components/prometheus-operator", "components/dashboard",
		"overlays/remote-write", "overlays/extender", "overlays/second-scheduler",
		"examples/combined", "examples/extender-certificates", "examples/keda-certificates",
	} {
		data, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
		require.NoError(t, err)
		var kustomization struct {
			Resources []string
			Patches   []struct{ Path string }
		}
		require.NoError(t, yaml.Unmarshal(data, &kustomization))
		named := kustomization.Resources
		for _, patch := range kustomization.Patches {
			named = append(named, patch.Path)
		}
		named = slices.DeleteFunc(named, func(name string) bool { return filepath.Ext(name) == "" })
		assert.ElementsMatch(t, files(t, folder), named, folder)
	}
}

// TestOverlaysOfComponentsAddNothing also finds the file that such a kustomization would forget.
func TestOverlaysOfComponentsAddNothing(t *testing.T) {
	for name, components := range map[string][]any{
		"cert-manager":       {"../../components/cert-manager"},
		"prometheus-servers": {"../../components/prometheus-servers"},
		"nodepool":           {"../../components/nodepool"},
		"nodepool-simulated": {"../../components/nodepool", "../../components/simulated-nodes"},
		"keda":               {"../../components/keda"},
		"custom-metrics":     {"../../components/custom-metrics"},
	} {
		folder := filepath.Join("overlays", name)
		data, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
		require.NoError(t, err)
		var kustomization map[string]any
		require.NoError(t, yaml.Unmarshal(data, &kustomization))
		assert.Equal(t, map[string]any{
			"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
			"resources":  []any{"../../base"},
			"components": components,
		}, kustomization)
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		assert.Len(t, entries, 1, folder)
	}
}

// granted lists every permission in a file, each as groups, resources, names and verbs.
func granted(t *testing.T, path string) []string {
	t.Helper()
	var found []string
	for _, object := range loadFile(t, path) {
		var rules []rbacv1.PolicyRule
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			rules = role.Rules
		case *rbacv1.Role:
			rules = role.Rules
		}
		for _, rule := range rules {
			if rule.NonResourceURLs != nil {
				found = append(found, fmt.Sprintf("%s %s", rule.NonResourceURLs, rule.Verbs))
				continue
			}
			found = append(found, fmt.Sprintf("%s %s %s %s", rule.APIGroups, rule.Resources, rule.ResourceNames,
				rule.Verbs))
		}
	}
	return found
}

// TestForesailIsGrantedWhatItUses lists every permission: one that nothing uses shall not come back.
func TestForesailIsGrantedWhatItUses(t *testing.T) {
	assert.ElementsMatch(t, []string{
		"[foresail.dev] [predictedmetrics] [] [list watch]",
		"[foresail.dev] [predictedmetrics/status] [] [patch]",
		"[foresail.dev] [predictedmetriccheckpoints] [] [get list watch create patch]",
		"[] [pods] [] [list watch]",
		"[apps] [deployments statefulsets] [] [list watch]",
		"[argoproj.io] [rollouts] [] [list watch]",
		"[*] [*/scale] [] [get]",
		"[metrics.k8s.io] [pods] [] [list]",
		"[events.k8s.io] [events] [] [create patch]",
		"[autoscaling] [horizontalpodautoscalers] [] [get list watch create patch delete]",
		"[keda.sh] [scaledobjects] [] [list]",
		"[coordination.k8s.io] [leases] [] [create]",
		"[coordination.k8s.io] [leases] [foresail-status] [get update]",
	}, granted(t, "base/rbac.yaml"))
	assert.ElementsMatch(t, []string{
		// of the HPA controller
		"[external.metrics.k8s.io] [predicted_load predicted_load_total predicted_replicas] [] [list]",
		"[/metrics] [get]",
		"[foresail.dev] [predictedmetrics predictedmetriccheckpoints] [] [get list watch]",
		"[foresail.dev] [predictedmetrics] [] [create update patch delete deletecollection]",
		// nobody else writes what is in them
		"[foresail.dev] [predictedmetriccheckpoints] [] [delete deletecollection]",
	}, granted(t, "base/rbac-users.yaml"))
	assert.ElementsMatch(t, []string{
		"[apiregistration.k8s.io] [apiservices] [] [create]",
		"[apiregistration.k8s.io] [apiservices] [v1beta1.external.metrics.k8s.io] [get watch patch delete]",
		"[rbac.authorization.k8s.io] [clusterroles] [foresail-apiservice] [get]",
		"[] [secrets] [] [create]", // of its own namespace, as the next
		"[] [secrets] [foresail-apiservice-ca] [get watch update]",
	}, granted(t, "base/rbac-apiservice.yaml"))
	assert.Equal(t, []string{"[external.metrics.k8s.io] [*] [] [list]"}, granted(t, "components/forward/rbac.yaml"))
	assert.Equal(t, []string{
		"[autoscaling.x-k8s.io] [capacitybuffers] [] [get list watch create patch delete]",
		"[] [nodes] [] [list watch]",
	}, granted(t, "components/capacity-buffer/rbac.yaml"))
	assert.ElementsMatch(t, []string{
		"[apiregistration.k8s.io] [apiservices] [v1beta2.custom.metrics.k8s.io v1beta1.custom.metrics.k8s.io] [get watch patch delete]",
		"[rbac.authorization.k8s.io] [clusterroles] [foresail-custom-metrics] [get]",
		"[custom.metrics.k8s.io] [predictedmetrics.foresail.dev/predicted_load predictedmetrics.foresail.dev/predicted_load_total " +
			"predictedmetrics.foresail.dev/predicted_replicas] [] [get list]", // of the HPA controller
	}, granted(t, "components/custom-metrics/rbac.yaml"))
	assert.ElementsMatch(t, []string{
		"[foresail.dev] [workerpools] [] [get list watch patch]",
		"[foresail.dev] [workerpools/status] [] [patch update]",
		"[] [nodes] [] [get list watch patch delete]",
		"[] [pods] [] [list watch]",
		"[] [persistentvolumeclaims persistentvolumes] [] [list watch]",
		"[storage.k8s.io] [storageclasses csinodes] [] [list watch]",
		"[storage.k8s.io] [volumeattachments] [] [list]",
		"[] [pods/eviction] [] [create]",
		"[] [pods] [] [delete]",
		"[policy] [poddisruptionbudgets] [] [list watch]",
		"[apps] [daemonsets] [] [list watch]",
		"[] [namespaces] [kube-system] [get]",
		"[events.k8s.io] [events] [] [create patch]",
		"[foresail.dev] [workerpools] [] [get list watch]", // of viewers
	}, granted(t, "components/nodepool/rbac.yaml"))
	assert.ElementsMatch(t, []string{
		"[] [nodes] [] [create]",
		"[] [nodes/status] [] [patch]",
		"[] [configmaps] [] [get list create update delete]",
	}, granted(t, "components/simulated-nodes/rbac.yaml"))
	assert.ElementsMatch(t, []string{
		"[] [nodes pods] [] [list watch]",
		"[] [pods] [] [get]",
		"[metrics.k8s.io] [nodes] [] [list]",
		"[foresail.dev] [workerpools] [] [list watch]",
		// of who explains, and of the account that replicas answer
		"[] [pods] [] [list]",
		"[] [pods/portforward] [] [get create]",
		"[] [serviceaccounts/token] [foresail-explain] [create]",
		"[/extender/pods/*] [get]",
	}, granted(t, "components/extender-rights/rbac.yaml"))
	assert.ElementsMatch(t, []string{ // of who looks, and of the account that replicas answer
		"[] [pods] [] [list]",
		"[] [pods/portforward] [] [get create]",
		"[] [serviceaccounts/token] [foresail-dashboard] [create]",
		"[/dashboard/*] [get]",
	}, granted(t, "components/dashboard/rbac.yaml"))
	assert.ElementsMatch(t, []string{
		"[coordination.k8s.io] [leases] [] [create]",
		"[coordination.k8s.io] [leases] [foresail-scheduler] [get list watch update]",
	}, granted(t, "overlays/second-scheduler/rbac.yaml"))
}

func TestMemoryLimitIsThatOfTheContainer(t *testing.T) {
	for _, container := range []corev1.Container{
		one[*appsv1.Deployment](t, load(t, "base")).Spec.Template.Spec.Containers[0],
		one[*appsv1.DaemonSet](t, loadFile(t, "overlays/extender/daemonset.yaml")).Spec.Template.Spec.Containers[0],
	} {
		assert.Equal(t, []corev1.EnvVar{{Name: "FORESAIL_MEMORY_LIMIT", ValueFrom: &corev1.EnvVarSource{
			ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"},
		}}}, container.Env)
		assert.Contains(t, container.Resources.Limits, corev1.ResourceMemory)
	}
}

func TestAPIServiceLeadsToTheDeployment(t *testing.T) {
	base := load(t, "base")
	deployment := one[*appsv1.Deployment](t, base)
	service := one[*corev1.Service](t, base)
	api := one[*apiregistrationv1.APIService](t, loadFile(t, "components/apiservice/apiservice.yaml"))
	pod := deployment.Spec.Template

	assert.Equal(t, service.Name, api.Spec.Service.Name)
	assert.Equal(t, service.Namespace, api.Spec.Service.Namespace)
	require.Len(t, service.Spec.Ports, 1)
	assert.Equal(t, service.Spec.Ports[0].Port, *api.Spec.Service.Port)
	assert.Equal(t, api.Spec.Version+"."+api.Spec.Group, api.Name)

	assert.Equal(t, pod.Labels, service.Spec.Selector)
	assert.Equal(t, pod.Labels, deployment.Spec.Selector.MatchLabels)
	assert.Equal(t, pod.Labels, one[*policyv1.PodDisruptionBudget](t, base).Spec.Selector.MatchLabels)
	assert.Equal(t, deployment.Namespace, service.Namespace)
	assert.Equal(t, one[*corev1.Namespace](t, base).Name, deployment.Namespace)

	var ports []string
	for _, port := range pod.Spec.Containers[0].Ports {
		ports = append(ports, port.Name)
	}
	assert.Contains(t, ports, service.Spec.Ports[0].TargetPort.StrVal)
	assert.Contains(t, ports, pod.Spec.Containers[0].LivenessProbe.HTTPGet.Port.StrVal)
	assert.Contains(t, ports, pod.Spec.Containers[0].ReadinessProbe.HTTPGet.Port.StrVal)
}

func TestBindingsBindWhatThereIs(t *testing.T) {
	base := load(t, "base")
	account := one[*corev1.ServiceAccount](t, base)
	pod := one[*appsv1.Deployment](t, base)
	assert.Equal(t, account.Name, pod.Spec.Template.Spec.ServiceAccountName)
	assert.Equal(t, account.Namespace, pod.Namespace)
	accounts := []rbacv1.Subject{
		{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace},
		{Kind: "ServiceAccount", Name: "horizontal-pod-autoscaler", Namespace: "kube-system"},
	}
	assert.Equal(t, 7, checkBindings(t, base, accounts))
	assert.Equal(t, 2, checkBindings(t, loadFile(t, "components/custom-metrics/rbac.yaml"), accounts))
	assert.Equal(t, 1, checkBindings(t, loadFile(t, "components/nodepool/rbac.yaml"), accounts[:1]))
	assert.Equal(t, 1, checkBindings(t, loadFile(t, "components/capacity-buffer/rbac.yaml"), accounts[:1]))
	looks := loadFile(t, "components/dashboard/rbac.yaml")
	account = one[*corev1.ServiceAccount](t, looks)
	assert.Equal(t, 1, checkBindings(t, looks,
		[]rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}))
	simulated := loadFile(t, "components/simulated-nodes/rbac.yaml")
	assert.Equal(t, 2, checkBindings(t, simulated, accounts[:1]))
	assert.Equal(t, one[*corev1.Namespace](t, loadFile(t, "components/simulated-nodes/namespace.yaml")).Name,
		one[*rbacv1.Role](t, simulated).Namespace)
}

// checkBindings fails the test unless each binding is of a role that there is to one of the
// accounts. It returns how many there are.
func checkBindings(t *testing.T, objects []runtime.Object, accounts []rbacv1.Subject) int {
	t.Helper()
	roles := []string{
		"ClusterRole/system:auth-delegator", "Role/extension-apiserver-authentication-reader",
		"ClusterRole/system:kube-scheduler", "ClusterRole/system:volume-scheduler",
	}
	for _, role := range all[*rbacv1.ClusterRole](objects) {
		roles = append(roles, "ClusterRole/"+role.Name)
	}
	for _, role := range all[*rbacv1.Role](objects) {
		roles = append(roles, "Role/"+role.Name)
	}
	bindings := 0
	check := func(name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		bindings++
		assert.Contains(t, roles, ref.Kind+"/"+ref.Name, name)
		assert.Subset(t, accounts, subjects, name)
	}
	for _, b := range all[*rbacv1.ClusterRoleBinding](objects) {
		check(b.Name, b.RoleRef, b.Subjects)
	}
	for _, b := range all[*rbacv1.RoleBinding](objects) {
		check(b.Name, b.RoleRef, b.Subjects)
	}
	return bindings
}

func TestExamplesFitTogether(t *testing.T) {
	examples := load(t, "examples")
	metrics := all[*v1alpha1.PredictedMetric](examples)
	require.NotEmpty(t, metrics)
	pm := metrics[0]
	var sources []string
	for _, other := range metrics {
		sources = append(sources, other.Spec.Source.Name())
		assert.Equal(t, pm.Name, other.Name, "they are alternatives")
		assert.Equal(t, pm.Spec.ScaleTargetRef, other.Spec.ScaleTargetRef)
		assert.Equal(t, pm.Spec.Threshold, other.Spec.Threshold)
		assert.Equal(t, pm.Spec.MinReplicas, other.Spec.MinReplicas)
		assert.Equal(t, pm.Spec.MaxReplicas, other.Spec.MaxReplicas)
	}
	slices.Sort(sources)
	assert.Equal(t, []string{"pods", "prometheus", "remoteWrite", "resource"}, slices.Compact(sources))
	hpas := all[*autoscalingv2.HorizontalPodAutoscaler](examples)
	var names []string
	for _, hpa := range hpas {
		ref := hpa.Spec.ScaleTargetRef
		assert.Equal(t, pm.Spec.ScaleTargetRef,
			v1alpha1.ScaleTargetRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name})
		assert.Equal(t, pm.Spec.MinReplicas, hpa.Spec.MinReplicas)
		assert.Equal(t, hpa.Spec.MaxReplicas, *pm.Spec.MaxReplicas)
		assert.Zero(t, hpa.Spec.Behavior.ScaleUp.Tolerance.Sign())
		require.Len(t, hpa.Spec.Metrics, 1)
		external := hpa.Spec.Metrics[0].External
		if external == nil {
			continue // an Object metric has a test of its own
		}
		assert.Equal(t, map[string]string{"predictedmetric": pm.Name}, external.Metric.Selector.MatchLabels)
		names = append(names, external.Metric.Name)

		var want autoscalingv2.MetricTarget
		switch one := resource.MustParse("1"); external.Metric.Name {
		case "predicted_load_total":
			want = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType,
				AverageValue: &pm.Spec.Threshold}
		case "predicted_load":
			want = autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: &pm.Spec.Threshold}
		case "predicted_replicas":
			want = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &one}
		}
		assert.Equal(t, want, external.Target, external.Metric.Name)
	}
	assert.ElementsMatch(t, []string{"predicted_load", "predicted_load_total", "predicted_replicas"}, names)
}

func TestHPAControllerMayReadWhatExamplesUse(t *testing.T) {
	for _, role := range all[*rbacv1.ClusterRole](load(t, "base")) {
		if role.Name == "foresail-metrics-reader" {
			for _, hpa := range all[*autoscalingv2.HorizontalPodAutoscaler](load(t, "examples")) {
				if external := hpa.Spec.Metrics[0].External; external != nil {
					assert.Contains(t, role.Rules[0].Resources, external.Metric.Name)
				}
			}
			return
		}
	}
	t.Fatal("no ClusterRole foresail-metrics-reader")
}

// validExample reads an example that the definition accepts as it is.
func validExample(t *testing.T, crd *crdtest.Definition, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	text, err := yaml.YAMLToJSONStrict(data)
	require.NoError(t, err)
	var object map[string]any
	require.NoError(t, json.Unmarshal(text, &object)) // with whole numbers as such
	assert.Empty(t, crd.UnknownFields(object))
	crd.Default(object)
	assert.Empty(t, crd.Validate(object))
	return data
}

func TestExamplesAreValidPredictedMetrics(t *testing.T) {
	files, err := filepath.Glob("examples/predictedmetric*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	crd := crdtest.Load(t, "crds/foresail.dev_predictedmetrics.yaml")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data := validExample(t, crd, file)

			spec, err := params.ParseSpec(data)
			require.NoError(t, err)
			p, err := params.FromSpec(spec)
			require.NoError(t, err)
			assert.Equal(t, 0.7, p.Threshold)
		})
	}
}

func TestExamplesAreValidWorkerPools(t *testing.T) {
	files, err := filepath.Glob("examples/workerpool*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	crd := crdtest.Load(t, "crds/foresail.dev_workerpools.yaml")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			validExample(t, crd, file)
			pool := one[*v1alpha1.WorkerPool](t, loadFile(t, file))
			assert.Equal(t, "workers", pool.Name, "they are alternatives")
		})
	}
}

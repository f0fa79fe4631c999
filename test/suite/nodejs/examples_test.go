package nodejs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/crdtest"
	"github.com/foresail/foresail/test/env/controlplane"
)

func root(t *testing.T) string {
	t.Helper()
	root, err := controlplane.Root()
	require.NoError(t, err)
	return root
}

// names are those of the examples, of their folders and of their Deployments.
var names = []string{"nodejs", "watt"}

func exampleFile(t *testing.T, name, file string) string {
	t.Helper()
	return filepath.Join(root(t), "docs", "examples", name, file)
}

// example returns the objects of a file of an example, by their names.
func example(t *testing.T, name, file string) map[string]*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(exampleFile(t, name, file))
	require.NoError(t, err)
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	objects := map[string]*unstructured.Unstructured{}
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		document, err = yaml.YAMLToJSONStrict(document)
		require.NoError(t, err)
		var object unstructured.Unstructured
		require.NoError(t, object.UnmarshalJSON(document))
		objects[object.GetKind()+"/"+object.GetName()] = &object
	}
	require.NotEmpty(t, objects, file)
	return objects
}

// as converts an object into its type and refuses fields that the type does not have.
func as[T any](t *testing.T, object *unstructured.Unstructured) T {
	t.Helper()
	require.NotNil(t, object)
	var typed T
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true))
	return typed
}

func TestExamplesAreValid(t *testing.T) {
	crd := crdtest.Load(t, filepath.Join(root(t), "manifests", "crds", "foresail.dev_predictedmetrics.yaml"))
	for _, name := range names {
		metrics := example(t, name, "predictedmetric.yaml")
		assert.ElementsMatch(t, []string{"PredictedMetric/" + name + "-elu", "PredictedMetric/" + name + "-heap"},
			slices.Collect(maps.Keys(metrics)))
		for name, object := range metrics {
			assert.Empty(t, crd.UnknownFields(object.DeepCopy().Object), name)
			defaulted := object.DeepCopy().Object
			crd.Default(defaulted)
			assert.Empty(t, crd.Validate(defaulted), name)
			pm := as[v1alpha1.PredictedMetric](t, object)
			pm.Spec.Default()
			_, err := params.FromSpec(pm.Spec)
			assert.NoError(t, err, name)
		}
	}
}

func TestExamplesFitTogether(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) { fitsTogether(t, name) })
	}
}

func fitsTogether(t *testing.T, name string) {
	deployment := as[appsv1.Deployment](t, example(t, name, "deployment.yaml")["Deployment/"+name])
	hpa := as[autoscalingv2.HorizontalPodAutoscaler](t, example(t, name, "hpa.yaml")["HorizontalPodAutoscaler/"+name])
	require.Len(t, deployment.Spec.Template.Spec.Containers, 1)
	var ports []string
	for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
		ports = append(ports, port.Name)
	}
	targets := map[string]resource.Quantity{}
	for _, m := range hpa.Spec.Metrics {
		require.Equal(t, "predicted_load_total", m.External.Metric.Name)
		targets[m.External.Metric.Selector.MatchLabels["predictedmetric"]] = *m.External.Target.AverageValue
	}
	for _, object := range example(t, name, "predictedmetric.yaml") {
		pm := as[v1alpha1.PredictedMetric](t, object)
		ref := hpa.Spec.ScaleTargetRef
		assert.Equal(t, pm.Spec.ScaleTargetRef,
			v1alpha1.ScaleTargetRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name})
		assert.Equal(t, deployment.Name, ref.Name)
		assert.Equal(t, pm.Spec.MinReplicas, hpa.Spec.MinReplicas)
		assert.Equal(t, hpa.Spec.MaxReplicas, *pm.Spec.MaxReplicas)
		assert.Contains(t, ports, pm.Spec.Source.Pods.Port.String())
		target, ok := targets[pm.Name]
		assert.True(t, ok && target.Cmp(pm.Spec.Threshold) == 0, "the HPA aims %s at %s: must be its threshold %s",
			pm.Name, target.String(), pm.Spec.Threshold.String())
	}
}

func TestKustomizationNamesEveryFile(t *testing.T) {
	data, err := os.ReadFile(exampleFile(t, "nodejs", "kustomization.yaml"))
	require.NoError(t, err)
	var kustomization struct {
		Resources          []string
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		}
	}
	require.NoError(t, yaml.Unmarshal(data, &kustomization))
	require.Len(t, kustomization.ConfigMapGenerator, 1)
	entries, err := os.ReadDir(exampleFile(t, "nodejs", "."))
	require.NoError(t, err)
	named := append(kustomization.Resources, kustomization.ConfigMapGenerator[0].Files...)
	named = append(named, "kustomization.yaml")
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	assert.ElementsMatch(t, files, named)
	deployment := as[appsv1.Deployment](t, example(t, "nodejs", "deployment.yaml")["Deployment/nodejs"])
	assert.Equal(t, kustomization.ConfigMapGenerator[0].Name, deployment.Spec.Template.Spec.Volumes[0].ConfigMap.Name)
}

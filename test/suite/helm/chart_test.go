package helm_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	manifests = "../../../manifests"
	folder    = manifests + "/chart/foresail"
	namespace = "foresail-system"
)

// alike are the values with which the chart has what a kustomization has. Its image is another one
// in any case.
var alike = map[string]string{
	"base":                        "",
	"overlays/cert-manager":       "certificates: {certManager: {enabled: true}}",
	"overlays/custom-metrics":     "customMetrics: {enabled: true}",
	"overlays/extender":           "extender: {enabled: true, placement: controlPlane}",
	"overlays/keda":               "keda: {enabled: true}",
	"overlays/nodepool":           "nodepool: {enabled: true}",
	"overlays/nodepool-simulated": "nodepool: {enabled: true, simulated: true}",
	"overlays/prometheus-servers": "prometheusServers: {enabled: true}",
	"overlays/remote-write":       "remoteWrite: {enabled: true}",
	"overlays/second-scheduler":   "extender: {enabled: true}\nscheduler: {enabled: true}",
	"examples/combined": `
remoteWrite: {enabled: true, certificate: true}
prometheusServers: {enabled: true}
certificates: {certManager: {enabled: true}}
resources: {requests: {cpu: "1", memory: 1Gi}, limits: {memory: 1536Mi}}`,
	"examples/extender-certificates": `
extender: {enabled: true, certificates: true}
scheduler: {enabled: true}`,
	"examples/forward":           "forward: {url: \"https://prometheus-adapter.monitoring.svc:443\", caConfigMap: foresail-forward-ca}",
	"examples/keda-certificates": "keda: {enabled: true, certificates: true}",
	// Components that no overlay has.
	"apiservice":                       "apiService: {create: true}",
	"apiservice + cert-manager":        "apiService: {create: true}\ncertificates: {certManager: {enabled: true}}",
	"capacity-buffer":                  "capacityBuffer: {enabled: true}",
	"dashboard":                        "dashboard: {enabled: true}",
	"grafana-dashboards":               "grafanaDashboards: {enabled: true}",
	"prometheus-operator":              "podMonitor: {enabled: true}\nprometheusRule: {enabled: true}",
	"nodepool + keda + custom-metrics": "nodepool: {enabled: true}\nkeda: {enabled: true}\ncustomMetrics: {enabled: true}",
}

// TestChartEqualsKustomizations compares objects: the chart has what kustomize makes of the manifests.
func TestChartEqualsKustomizations(t *testing.T) { chartEqualsKustomizations(t, current) }

func chartEqualsKustomizations(t *testing.T, program string) {
	overlays, err := filepath.Glob(manifests + "/overlays/*")
	require.NoError(t, err)
	for _, overlay := range overlays {
		assert.Contains(t, alike, "overlays/"+filepath.Base(overlay), "there are no values for it")
	}
	parts, err := os.ReadFile(folder + "/templates/_helpers.tpl")
	require.NoError(t, err)
	components, err := filepath.Glob(manifests + "/components/*")
	require.NoError(t, err)
	for _, component := range components {
		assert.Contains(t, string(parts), "\n- [components/"+filepath.Base(component)+", ", "no value switches it on")
	}
	for name, values := range alike {
		t.Run(name, func(t *testing.T) {
			want := objects(t, kustomize(t, name))
			// Helm creates it where it is told to, and the chart cannot own what the release itself
			// is kept in.
			delete(want, "Namespace//"+namespace)
			got := objects(t, render(t, program, values))
			assert.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
			for key, object := range want {
				assert.Equal(t, object, got[key], key)
			}
		})
	}
}

// kustomize renders a kustomization, or the base with components.
func kustomize(t *testing.T, name string) []byte {
	t.Helper()
	path := filepath.Join(manifests, name)
	if _, err := os.Stat(path); err != nil {
		path = t.TempDir()
		absolute, err := filepath.Abs(manifests)
		require.NoError(t, err)
		inside, err := filepath.Rel(path, absolute)
		require.NoError(t, err)
		text := fmt.Sprintf("resources: [%s/base]\ncomponents:\n", inside)
		for component := range strings.SplitSeq(name, " + ") {
			text += fmt.Sprintf("- %s/components/%s\n", inside, component)
		}
		require.NoError(t, os.WriteFile(filepath.Join(path, "kustomization.yaml"), []byte(text), 0o600))
	}
	return output(t, kubectlProgram, "kustomize", path)
}

// render renders the chart.
func render(t *testing.T, program, values string, arguments ...string) []byte {
	t.Helper()
	arguments = append([]string{"template", "foresail", folder, "--namespace", namespace, "--kube-version",
		"v1.37.2+k3s1", "--values", file(t, values)}, arguments...)
	return output(t, program, arguments...)
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// run runs a program to its end, and returns what it wrote.
func run(ctx context.Context, program string, arguments ...string) (stdout, stderr []byte, err error) {
	var out, complaints bytes.Buffer
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdout, command.Stderr = &out, &complaints
	err = command.Run()
	return out.Bytes(), complaints.Bytes(), err
}

func output(t *testing.T, program string, arguments ...string) []byte {
	t.Helper()
	out, complaints, err := run(t.Context(), program, arguments...)
	require.NoError(t, err, "%s %s\n%s", filepath.Base(program), strings.Join(arguments, " "), complaints)
	return out
}

// objects returns rendered objects by kind, namespace and name, without what is the chart's own or
// no difference.
func objects(t *testing.T, rendered []byte) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	// As clients of the API do, it leaves a document the line break at its end, which a block of
	// text may end with.
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(rendered)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		var o unstructured.Unstructured
		require.NoError(t, yaml.UnmarshalStrict(document, &o.Object))
		if len(o.Object) == 0 {
			continue
		}
		normalize(t, &o)
		key := o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
		require.NotContains(t, found, key)
		found[key] = o.Object
	}
}

var (
	ownLabels = []string{
		"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/part-of",
		"app.kubernetes.io/version",
	}
	ownAnnotations = []string{"helm.sh/resource-policy", "checksum/configuration"}
	contentHash    = regexp.MustCompile(`^(foresail-scheduler-configuration)-[a-z0-9]+$`)
)

func normalize(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	for _, label := range ownLabels {
		delete(labels, label)
	}
	for _, annotation := range ownAnnotations {
		delete(annotations, annotation)
	}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	for field, left := range map[string]int{"labels": len(labels), "annotations": len(annotations)} {
		if left == 0 {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
	}
	if _, ok, _ := unstructured.NestedString(o.Object, "data", "kubescheduler.yaml"); ok {
		o.SetName(contentHash.ReplaceAllString(o.GetName(), "$1"))
		var configuration map[string]any
		text, _, err := unstructured.NestedString(o.Object, "data", "kubescheduler.yaml")
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &configuration)) // comments are none of it
		require.NoError(t, unstructured.SetNestedMap(o.Object, configuration, "data"))
	}
	if pod, ok, err := unstructured.NestedMap(o.Object, "spec", "template"); ok {
		require.NoError(t, err)
		normalizePod(t, pod)
		require.NoError(t, unstructured.SetNestedMap(o.Object, pod, "spec", "template"))
	}
}

// normalizePod leaves out the order of what has none.
func normalizePod(t *testing.T, pod map[string]any) {
	t.Helper()
	if annotations, ok, _ := unstructured.NestedMap(pod, "metadata", "annotations"); ok {
		for _, annotation := range ownAnnotations {
			delete(annotations, annotation)
		}
		if len(annotations) == 0 {
			unstructured.RemoveNestedField(pod, "metadata", "annotations")
		}
	}
	spec := pod["spec"].(map[string]any)
	sortByName(spec["volumes"])
	for _, v := range asList(spec["volumes"]) {
		if configMap, ok := v.(map[string]any)["configMap"].(map[string]any); ok {
			configMap["name"] = contentHash.ReplaceAllString(configMap["name"].(string), "$1")
		}
	}
	containers := asList(spec["containers"])
	require.Len(t, containers, 1)
	container := containers[0].(map[string]any)
	sortByName(container["ports"])
	sortByName(container["volumeMounts"])
	if image := container["image"].(string); image == "foresail:dev" ||
		strings.HasPrefix(image, "registry.example.com/foresail:") ||
		strings.HasPrefix(image, "ghcr.io/foresail/foresail:") {
		container["image"] = "foresail"
	}
	container["args"] = flags(asList(container["args"]))
}

// flags are the values of arguments: of one that is repeated the last counts, but for --enable,
// whose words add up.
func flags(arguments []any) map[string]any {
	found := map[string]any{}
	for _, a := range arguments {
		name, value, _ := strings.Cut(a.(string), "=")
		if before, ok := found[name]; ok && name == "--enable" {
			words := slices.Sorted(slices.Values(strings.Split(before.(string)+","+value, ",")))
			value = strings.Join(slices.Compact(words), ",")
		}
		found[name] = value
	}
	return found
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func sortByName(v any) {
	slices.SortFunc(asList(v), func(a, b any) int {
		return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
	})
}

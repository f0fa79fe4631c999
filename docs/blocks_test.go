package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/exporter-toolkit/web"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/internal/crdtest"
	"github.com/foresail/foresail/internal/docpages"
	"github.com/foresail/foresail/internal/promapi"
)

// object reads a YAML document, with whole numbers as such.
func object(t *testing.T, document string) map[string]any {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(document))
	require.NoError(t, err, document)
	var o map[string]any
	require.NoError(t, json.Unmarshal(text, &o), document)
	return o
}

// foreign are the top-level keys of what other programs read. Their types are not among this module's
// dependencies.
var foreign = map[string][]string{
	"kubeadm.k8s.io/v1beta4, ClusterConfiguration": {"apiVersion", "kind", "scheduler"},
	"monitoring.coreos.com/v1, PodMonitor":         {"apiVersion", "kind", "metadata", "spec"},
	"keda.sh/v1alpha1, ScaledObject":               {"apiVersion", "kind", "metadata", "spec"},
	"configuration of Prometheus":                  {"scrape_configs", "remote_write", "rule_files"},
	"configuration of the OpenTelemetry Collector": {"extensions", "processors", "exporters", "service"},
	"relabelling": {"source_labels", "target_label", "regex", "action"},
}

// TestYAML checks every YAML block by what reads it: the CRDs with their CEL rules, the Go types of
// Kubernetes, kustomize, or Foresail's own parsers. A block that nothing reads fails.
func TestYAML(t *testing.T) {
	definitions := map[any]*crdtest.Definition{
		"PredictedMetric": crdtest.Load(t, "../manifests/crds/foresail.dev_predictedmetrics.yaml"),
		"WorkerPool":      crdtest.Load(t, "../manifests/crds/foresail.dev_workerpools.yaml"),
	}
	kubernetes := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, page := range docpages.Pages(t, "..") {
		for _, block := range page.Blocks() {
			if block.Language == "sh" {
				for _, text := range block.HereDocuments() {
					if o := object(t, text); o["resources"] != nil {
						t.Run(block.Where, func(t *testing.T) { renders(t, text) })
					}
				}
			}
			if block.Language != "yaml" {
				continue
			}
			t.Run(block.Where, func(t *testing.T) {
				for _, document := range block.Documents() {
					checkYAML(t, definitions, kubernetes, document)
				}
			})
		}
	}
}

func checkYAML(t *testing.T, definitions map[any]*crdtest.Definition, kubernetes runtime.Decoder, document string) {
	t.Helper()
	o := object(t, document)
	version, _ := o["apiVersion"].(string)
	switch {
	case strings.HasPrefix(version, "foresail.dev/"):
		require.Contains(t, definitions, o["kind"])
		isValid(t, definitions[o["kind"]], document, o)
	case o["source"] != nil && o["threshold"] != nil: // a part of the spec of a PredictedMetric
		o["scaleTargetRef"] = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout"}
		o["maxReplicas"] = int64(20)
		whole := map[string]any{
			"apiVersion": "foresail.dev/v1alpha1", "kind": "PredictedMetric",
			"metadata": map[string]any{"name": "checkout"}, "spec": o,
		}
		text, err := yaml.Marshal(whole)
		require.NoError(t, err)
		isValid(t, definitions["PredictedMetric"], string(text), whole)
	case o["requirements"] != nil: // a part of the provider of a WorkerPool
		o["launchTemplate"], o["region"] = "lt-0123456789abcdef0", "eu-central-1"
		o["subnets"] = []any{map[string]any{"zone": "eu-central-1a", "id": "subnet-0123456789abcdef0"}}
		spec := map[string]any{"min": int64(1), "max": int64(2), "provider": map[string]any{"ec2": o}}
		isValid(t, definitions["WorkerPool"], document, map[string]any{
			"apiVersion": "foresail.dev/v1alpha1", "kind": "WorkerPool",
			"metadata": map[string]any{"name": "workers"}, "spec": spec,
		})
	case o["metrics"] != nil: // a part of the spec of an HPA
		assert.NoError(t, yaml.UnmarshalStrict([]byte(document), &autoscalingv2.HorizontalPodAutoscalerSpec{}))
	case o["groups"] != nil:
		areRules(t, o)
	case o["kind"] == "Kustomization" || o["resources"] != nil:
		renders(t, document)
	case o["servers"] != nil:
		areServers(t, document)
	case o["basic_auth_users"] != nil:
		isWebConfiguration(t, document)
	case o["kind"] == "TracingConfiguration":
		file := filepath.Join(t.TempDir(), "tracing.yaml")
		require.NoError(t, os.WriteFile(file, []byte(document), 0o600))
		_, err := genericoptions.ReadTracingConfiguration(file)
		assert.NoError(t, err)
	default:
		_, _, err := kubernetes.Decode([]byte(document), nil, nil)
		if version != "" && !runtime.IsNotRegisteredError(err) {
			assert.NoError(t, err)
			return
		}
		for _, keys := range foreign {
			if subset(o, keys) {
				return
			}
		}
		assert.Fail(t, "nothing here reads this block", document)
	}
}

// subset reports whether an object has the given keys only.
func subset(o map[string]any, keys []string) bool {
	for key := range o {
		if !slices.Contains(keys, key) {
			return false
		}
	}
	return true
}

// isValid fails the test unless an API server would create the object, and Foresail would take it.
func isValid(t *testing.T, crd *crdtest.Definition, document string, o map[string]any) {
	t.Helper()
	assert.Empty(t, crd.UnknownFields(o))
	crd.Default(o)
	assert.Empty(t, crd.Validate(o))
	if o["kind"] != "PredictedMetric" {
		return
	}
	spec, err := params.ParseSpec([]byte(document))
	require.NoError(t, err)
	_, err = params.FromSpec(spec)
	assert.NoError(t, err)
}

// renders fails the test unless kubectl renders the kustomization in a folder next to manifests. Without
// kubectl it checks that what the kustomization names exists.
func renders(t *testing.T, document string) {
	t.Helper()
	combined, err := os.ReadFile("../manifests/examples/combined/kustomization.yaml")
	require.NoError(t, err)
	if o := object(t, document); assert.ObjectsAreEqual(object(t, string(combined)), o) {
		return // manifests has a test that renders it
	}
	root := t.TempDir()
	manifests, err := filepath.Abs("../manifests")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(manifests, filepath.Join(root, "manifests")))
	folder := filepath.Join(root, "deploy")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(document), 0o600))
	var named struct{ Resources, Components []string }
	require.NoError(t, yaml.Unmarshal([]byte(document), &named))
	for _, path := range slices.Concat(named.Resources, named.Components) {
		assert.FileExists(t, filepath.Join(folder, path, "kustomization.yaml"))
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return
	}
	rendered, err := exec.CommandContext(t.Context(), kubectl, "kustomize", folder).CombinedOutput()
	require.NoError(t, err, string(rendered))
	assert.NotContains(t, string(rendered), "foresail:dev", "the image is one's own")
}

func areRules(t *testing.T, o map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(o)
	require.NoError(t, err)
	var rules struct {
		Groups []struct {
			Name, Interval string
			Rules          []struct {
				Alert, Record, Expr, For string
				Labels, Annotations      map[string]string
			}
		}
	}
	require.NoError(t, yaml.UnmarshalStrict(text, &rules))
	require.NotEmpty(t, rules.Groups)
	for _, group := range rules.Groups {
		require.NotEmpty(t, group.Rules)
		for _, rule := range group.Rules {
			assert.NotEqual(t, rule.Alert == "", rule.Record == "", "one of the two")
			assert.NotEmpty(t, rule.Expr)
		}
	}
}

func areServers(t *testing.T, document string) {
	t.Helper()
	folder := withCertificate(t)
	for file, content := range map[string]string{"servers.yaml": document, "token": "t", "password": "p"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600))
	}
	_, err := promapi.LoadServers(filepath.Join(folder, "servers.yaml"))
	assert.NoError(t, err)
}

func isWebConfiguration(t *testing.T, document string) {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("p"), bcrypt.MinCost)
	require.NoError(t, err)
	file := filepath.Join(withCertificate(t), "web.yml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(document, "$2y$10$…", string(hash))), 0o600))
	assert.NoError(t, web.Validate(file))
}

// withCertificate returns a folder with a certificate that signs itself.
func withCertificate(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	require.NoError(t, err)
	for file, content := range map[string][]byte{"ca.crt": certificate, "tls.crt": certificate, "tls.key": key} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), content, 0o600))
	}
	return folder
}

var target = regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `)

// TestCommandsExist checks the targets of make and the paths that command lines name. cmd/foresail checks
// those of foresail.
func TestCommandsExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	var targets []string
	for _, match := range target.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, match[1])
	}
	require.NotEmpty(t, targets)
	for _, page := range docpages.Pages(t, "..") {
		for _, command := range page.Commands() {
			for i, word := range command.Words {
				switch {
				case command.Words[0] == "make" && i == 1:
					assert.Contains(t, targets, word, command.Where)
				case strings.HasPrefix(word, "./"), strings.HasPrefix(word, "manifests/"), strings.HasPrefix(word,
					"docs/"):
					assert.True(t, exists(filepath.Join("..", strings.TrimSuffix(word, "/..."))), "%s: %s",
						command.Where, word)
				}
			}
		}
	}
}

// TestHelmValuesOfPagesExist checks what commands set in the chart of Foresail, which rejects other values.
func TestHelmValuesOfPagesExist(t *testing.T) {
	text, err := os.ReadFile("../manifests/chart/foresail/values.yaml")
	require.NoError(t, err)
	var values map[string]any
	require.NoError(t, yaml.Unmarshal(text, &values))
	found := 0
	for _, page := range docpages.Pages(t, "..") {
		for _, command := range page.Commands() {
			if command.Words[0] != "helm" || !slices.Contains(command.Words, "manifests/chart/foresail") {
				continue
			}
			for i, word := range command.Words {
				if i == 0 || command.Words[i-1] != "--set" {
					continue
				}
				for setting := range strings.SplitSeq(word, ",") {
					found++
					path, _, _ := strings.Cut(setting, "=")
					_, ok, err := unstructured.NestedFieldNoCopy(values, strings.Split(path, ".")...)
					assert.NoError(t, err, "%s: %s", command.Where, path)
					assert.True(t, ok, "%s: the chart has no value %s", command.Where, path)
				}
			}
		}
	}
	assert.NotZero(t, found)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// oldestMinor is the minor version of Kubernetes that operating.md names for the CRDs.
const oldestMinor = 29

func TestCRDsNeedTheVersionThatOperatingNames(t *testing.T) {
	page, err := os.ReadFile("operating.md")
	require.NoError(t, err)
	assert.Contains(t, string(page), fmt.Sprintf("| 1.%d, for the rules in the CRDs |", oldestMinor))
	older := 0
	for _, file := range []string{"predictedmetrics", "workerpools"} {
		crd := crdtest.Load(t, "../manifests/crds/foresail.dev_"+file+".yaml")
		assert.Empty(t, crd.CompileErrors(oldestMinor), file)
		older += len(crd.CompileErrors(oldestMinor - 1))
	}
	assert.NotZero(t, older, "an older version would do")
}

var printedTable = regexp.MustCompile(`(?m)^\$ kubectl get (pm|wp)\b.*\n(.*)$`)

func TestPrintedTablesHaveTheColumnsOfTheCRDs(t *testing.T) {
	columns := map[string][]string{"pm": printedColumns(t, "predictedmetrics"), "wp": printedColumns(t, "workerpools")}
	found := 0
	for _, page := range docpages.Pages(t, "..") {
		for _, match := range printedTable.FindAllStringSubmatch(page.Text, -1) {
			found++
			assert.Equal(t, columns[match[1]], strings.Fields(match[2]), page.Path)
		}
	}
	assert.NotZero(t, found)
}

// printedColumns returns the header that kubectl get prints for a kind.
func printedColumns(t *testing.T, plural string) []string {
	t.Helper()
	text, err := os.ReadFile("../manifests/crds/foresail.dev_" + plural + ".yaml")
	require.NoError(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(text, &crd))
	header := []string{"NAME"}
	for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		if column.Priority == 0 {
			header = append(header, strings.ToUpper(column.Name))
		}
	}
	return header
}

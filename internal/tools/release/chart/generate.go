// Package chart generates the parts of the Helm chart that follow from others.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Folder is where the chart is, below the root of the repository.
const Folder = "manifests/chart/foresail"

// copied are the templates that say the same as a part of the kustomizations: there is one text of each.
var copied = []struct {
	template string   // below templates
	when     string   // the condition; "" for always
	sources  []string // below manifests
}{
	{"rbac.yaml", "", []string{"base/rbac.yaml", "base/rbac-users.yaml", "base/rbac-apiservice.yaml"}},
	{"nodepool.yaml", ".Values.nodepool.enabled", []string{"components/nodepool/rbac.yaml"}},
	{"simulated-nodes.yaml", ".Values.nodepool.simulated", []string{"components/simulated-nodes/namespace.yaml", "components/simulated-nodes/rbac.yaml"}},
	{"custom-metrics.yaml", ".Values.customMetrics.enabled", []string{"components/custom-metrics/rbac.yaml"}},
	{"capacity-buffer.yaml", ".Values.capacityBuffer.enabled", []string{"components/capacity-buffer/rbac.yaml"}},
	{"dashboard.yaml", ".Values.dashboard.enabled", []string{"components/dashboard/rbac.yaml"}},
	{"scraper.yaml", "and .Values.podMonitor.enabled .Values.podMonitor.createAccount", []string{"components/prometheus-operator/account.yaml"}},
	{"forward.yaml", ".Values.forward.url", []string{"components/forward/rbac.yaml"}},
	{"extender.yaml", ".Values.extender.enabled", []string{"components/extender-rights/rbac.yaml"}},
	{"extender-pods.yaml", `and .Values.extender.enabled (eq .Values.extender.placement "pods")`, []string{"components/extender/binding.yaml", "components/extender/service.yaml"}},
	{"extender-network.yaml", `and .Values.networkPolicy.enabled .Values.extender.enabled (eq .Values.extender.placement "pods")`, []string{"components/extender/networkpolicy.yaml"}},
	{"extender-control-plane.yaml", `and .Values.extender.enabled (eq .Values.extender.placement "controlPlane")`, []string{"overlays/extender/serviceaccount.yaml", "overlays/extender/binding.yaml"}},
	{"extender-certificates.yaml", ".Values.extender.certificates", []string{"examples/extender-certificates/certificates.yaml"}},
	{"mutual-tls.yaml", "or .Values.extender.certificates .Values.keda.certificates", []string{"components/mutual-tls/authority.yaml"}},
	{"scheduler-rbac.yaml", ".Values.scheduler.enabled", []string{"overlays/second-scheduler/rbac.yaml", "overlays/second-scheduler/poddisruptionbudget.yaml"}},
	{"keda-service.yaml", ".Values.keda.enabled", []string{"components/keda/service.yaml"}},
	{"keda-network.yaml", "and .Values.networkPolicy.enabled .Values.keda.enabled", []string{"components/keda/networkpolicy.yaml"}},
	{"keda-certificates.yaml", ".Values.keda.certificates", []string{"examples/keda-certificates/certificates.yaml", "examples/keda-certificates/authentication.yaml"}},
	{"remote-write-network.yaml", "and .Values.networkPolicy.enabled .Values.remoteWrite.enabled", []string{"overlays/remote-write/networkpolicy.yaml"}},
}

// files are rendered by templates that read them with .Files.Get and tpl.
var files = map[string]string{
	"kubescheduler.yaml":              "overlays/second-scheduler/configuration/kubescheduler.yaml",
	"kubescheduler-certificates.yaml": "examples/extender-certificates/configuration/kubescheduler.yaml",
}

// verbatim are folders of files, below files, that templates put into objects as they are.
var verbatim = map[string]string{
	"alerts":     "alerts/*.yaml",
	"dashboards": "components/grafana-dashboards/*.json",
}

// Generate writes what is generated of the chart, in the repository at root.
func Generate(root string) error {
	manifests, target := filepath.Join(root, "manifests"), filepath.Join(root, Folder)
	written := map[string][]byte{}
	for _, c := range copied {
		text, err := templateOf(manifests, c.when, c.sources...)
		if err != nil {
			return fmt.Errorf("%s: %w", c.template, err)
		}
		written["templates/"+c.template] = text
	}
	for name, source := range files {
		text, err := os.ReadFile(filepath.Join(manifests, source))
		if err != nil {
			return err
		}
		written["files/"+name] = []byte(values.Replace(string(text)))
	}
	for folder, pattern := range verbatim {
		sources, err := filepath.Glob(filepath.Join(manifests, pattern))
		if err != nil {
			return err
		}
		for _, source := range sources {
			if written["files/"+folder+"/"+filepath.Base(source)], err = os.ReadFile(source); err != nil {
				return err
			}
		}
	}
	crds, err := filepath.Glob(filepath.Join(manifests, "crds", "foresail.dev_*.yaml"))
	if err != nil {
		return err
	}
	for _, crd := range crds {
		text, err := os.ReadFile(crd)
		if err != nil {
			return err
		}
		if written["templates/crds/"+filepath.Base(crd)], err = crdTemplate(text); err != nil {
			return fmt.Errorf("%s: %w", crd, err)
		}
	}
	defaults, err := os.ReadFile(filepath.Join(target, "values.yaml"))
	if err != nil {
		return err
	}
	schema, table, err := Describe(defaults)
	if err != nil {
		return fmt.Errorf("values.yaml: %w", err)
	}
	written["values.schema.json"] = schema
	if written["README.md"], err = withTable(filepath.Join(target, "README.md"), table); err != nil {
		return err
	}
	for name, text := range written {
		path := filepath.Join(target, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// values replace what the manifests name and a value may change.
var values = strings.NewReplacer(
	"foresail-system", "{{ .Release.Namespace }}",
	"FORESAIL-ACCOUNT", "{{ .Values.serviceAccount.name }}",
	"metadata.name: keda}", "metadata.name: {{ .Values.keda.namespace }}}",
	"secretName: foresail-keda-tls\n", "secretName: {{ .Values.keda.secretName }}\n",
	"    FORESAIL-METADATA: x\n", `    {{- include "foresail.labels" . | nindent 4 }}
  {{- include "foresail.annotations" . }}
`,
	"    FORESAIL-LABELS: x\n", `    {{- include "foresail.labels" . | nindent 4 }}
`,
	"    FORESAIL-ANNOTATIONS: x\n", `    {{- with .Values.additionalAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
`)

const generated = "{{- /* Generated by make generate from manifests/%s. */}}\n"

// partOf is among the labels of the chart.
const partOf = "app.kubernetes.io/part-of"

// templateOf makes a template of manifests.
func templateOf(manifests, when string, sources ...string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, generated, strings.Join(sources, ", manifests/"))
	if when != "" {
		fmt.Fprintf(&b, "{{- if %s }}\n", when)
	}
	for _, source := range sources {
		text, err := os.ReadFile(filepath.Join(manifests, source))
		if err != nil {
			return nil, err
		}
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var document yaml.Node
			err := decoder.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", source, err)
			}
			object, err := objectTemplate(document.Content[0])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", source, err)
			}
			b.WriteString("---\n" + object)
		}
	}
	if when != "" {
		b.WriteString("{{- end }}\n")
	}
	return b.Bytes(), nil
}

// objectTemplate gives an object the labels of the chart, the namespace of the release and the account of the values.
func objectTemplate(object *yaml.Node) (string, error) {
	metadata := field(object, "metadata")
	if metadata == nil {
		return "", errors.New("an object without metadata")
	}
	metadata.Style = 0
	if labels := field(metadata, "labels"); labels != nil {
		labels.Style = 0
		remove(labels, partOf)
		if len(labels.Content) == 0 {
			remove(metadata, "labels")
		}
	}
	labels := field(metadata, "labels")
	if labels == nil {
		labels = &yaml.Node{Kind: yaml.MappingNode}
		metadata.Content = append(metadata.Content, scalar("labels"), labels)
	}
	if annotations := field(metadata, "annotations"); annotations != nil {
		annotations.Style = 0
		annotations.Content = append(annotations.Content, scalar("FORESAIL-ANNOTATIONS"), scalar("x"))
		labels.Content = append(labels.Content, scalar("FORESAIL-LABELS"), scalar("x"))
	} else {
		labels.Content = append(labels.Content, scalar("FORESAIL-METADATA"), scalar("x"))
	}
	if subjects := field(object, "subjects"); subjects != nil {
		for _, subject := range subjects.Content {
			if name := field(subject, "name"); name != nil && name.Value == "foresail" {
				name.Value = "FORESAIL-ACCOUNT"
			}
		}
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(object); err != nil {
		return "", err
	}
	if strings.Contains(b.String(), "{{") {
		return "", errors.New("the text has {{, which is the beginning of a template")
	}
	return values.Replace(b.String()), nil
}

func scalar(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }

// field returns the value of a key of a mapping, nil if it has none.
func field(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func remove(mapping *yaml.Node, key string) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content = append(mapping.Content[:i], mapping.Content[i+2:]...)
			return
		}
	}
}

// crdTemplate makes a template of a CRD: Helm upgrades what is a template, and nothing in a folder crds.
func crdTemplate(text []byte) ([]byte, error) {
	if bytes.Contains(text, []byte("{{")) {
		return nil, errors.New("the text has {{, which is the beginning of a template")
	}
	const annotations = "  annotations:\n"
	const begin = "---\n"
	if bytes.Count(text, []byte("\n"+annotations)) != 1 || !bytes.HasPrefix(text, []byte(begin)) {
		return nil, errors.New("it is not as controller-gen writes it")
	}
	with := strings.Replace(string(text[len(begin):]), annotations, `  labels:
    {{- include "foresail.labels" . | nindent 4 }}
  annotations:
    {{- if .Values.crds.keep }}
    helm.sh/resource-policy: keep
    {{- end }}
`, 1)
	return []byte(fmt.Sprintf(generated, "crds") + "{{- if .Values.crds.install }}\n" + with + "{{- end }}\n"), nil
}

//go:build long

package keda_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/internal/docpages"
	"github.com/foresail/foresail/test/env/kubectl"
	"github.com/foresail/foresail/test/suite/keda"
)

// terminal runs commands as a reader of the documentation does.
type terminal struct {
	*testing.T
	folder, path string
}

// newTerminal is in a folder that has the manifests.
func newTerminal(t *testing.T) *terminal {
	program, err := kubectl.Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	manifests, err := filepath.Abs("../../../manifests")
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.Symlink(manifests, filepath.Join(folder, "manifests")))
	return &terminal{t, folder, filepath.Dir(program)}
}

func (t *terminal) run(where, script string) string {
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	command.Dir = t.folder
	command.Env = append(os.Environ(), "PATH="+t.path+":"+os.Getenv("PATH"),
		"KUBECONFIG="+shared.stack.Cluster.Kubeconfig())
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s\n%s", where, script, output)
	return string(output)
}

// certManagerKinds are those of cert-manager that the example has. Nothing acts on them: the tests
// make certificates themselves.
func certManagerKinds(t *testing.T) []byte {
	var kinds bytes.Buffer
	for _, kind := range []struct{ Kind, Scope string }{{"Certificate", "Namespaced"}, {"Issuer", "Namespaced"}} {
		require.NoError(t, certManagerKind.Execute(&kinds, kind))
	}
	return kinds.Bytes()
}

var certManagerKind = template.Must(template.New("").Funcs(template.FuncMap{"lower": strings.ToLower}).Parse(`---
apiVersion: v1
kind: Namespace
metadata: {name: cert-manager}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: {{ lower .Kind }}s.cert-manager.io}
spec:
  group: cert-manager.io
  scope: {{ .Scope }}
  names: {kind: {{ .Kind }}, plural: {{ lower .Kind }}s, singular: {{ lower .Kind }}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`))

// TestPagesDoWhatTheySay runs the commands and manifests of the pages on KEDA and on the doors in
// the order of a reader, with the real kubectl and KEDA. It leaves Helm out: docs checks the values
// that pages set, and test/suite/helm renders the chart.
func TestPagesDoWhatTheySay(t *testing.T) {
	pages := map[string]docpages.Page{}
	for _, page := range docpages.Pages(t, "../../..") {
		pages[page.Path] = page
	}
	shell := newTerminal(t)
	_, err := shared.stack.Cluster.Apply(t.Context(), certManagerKinds(t))
	require.NoError(t, err)
	a := newApp(t, "pages", 2.5, func(a *app) { a.NoScaledObject = true })
	a.HPA = "keda-hpa-app"
	page := quickStart{t, shell, pages["docs/keda.md"]}

	page.apply("kind: PredictedMetric")
	a.eventually(time.Minute, "the forecast is in dry run", func(c *assert.CollectT) {
		assert.Contains(c, shell.run("", "kubectl get pm -n pages"), "DryRun")
	})
	page.apply("type: prometheus")
	a.eventually(time.Minute, "the HPA reads Prometheus",
		func(c *assert.CollectT) { assert.Contains(c, a.metrics(c), "s0-prometheus") })
	issueClient(t)
	page.sh()
	page.apply("type: external-push")
	a.becomesActive()
	a.carry(5.1)
	a.eventually(time.Minute, "there are as many pods as the load needs",
		func(c *assert.CollectT) { assert.GreaterOrEqual(c, a.replicas(c), 8) })
	page.prints()
	page.apply("type: prometheus")
	a.eventually(time.Minute, "the HPA reads Prometheus again",
		func(c *assert.CollectT) { assert.Contains(c, a.metrics(c), "s0-prometheus") })

	deployment, err := shared.stack.Cluster.Client().AppsV1().Deployments("foresail-system").Get(t.Context(),
		"foresail", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "registry.example.com/foresail:v1", deployment.Spec.Template.Spec.Containers[0].Image)
	assert.Contains(t, deployment.Spec.Template.Spec.Containers[0].Args, "--keda-address=:9600")

	asked := 0
	for _, command := range pages["docs/doors.md"].Commands() {
		if command.Words[0] == "kubectl" {
			output := shell.run(command.Where, strings.Join(command.Words, " "))
			assert.Contains(t, output, "SERVICE")
			assert.Contains(t, output, "keda/keda-metrics-apiserver")
			asked++
		}
	}
	assert.NotZero(t, asked)
}

// issueClient leaves KEDA's certificate where cert-manager would issue it, and not where KEDA reads it.
func issueClient(t *testing.T) {
	secrets := shared.stack.Cluster.Client().CoreV1().Secrets
	secret := clientSecret(t)
	_, err := shared.stack.Cluster.Apply(t.Context(), []byte(`
apiVersion: v1
kind: Namespace
metadata: {name: foresail-system}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: foresail-keda-client, namespace: foresail-system}
status: {conditions: [{type: Ready, status: "True"}]}
`))
	require.NoError(t, err)
	issued := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret.Name,
			Namespace: "foresail-system"}, Data: secret.Data, Type: corev1.SecretTypeTLS,
	}
	_, err = secrets(issued.Namespace).Create(t.Context(), issued, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, secrets(keda.Namespace).Delete(t.Context(), secret.Name, metav1.DeleteOptions{}))
	t.Cleanup(func() { assert.Equal(t, issued.Data, clientSecret(t).Data, "KEDA has the copy") })
}

// metrics returns the names of the external metrics that the HPA reads.
func (a *app) metrics(c require.TestingT) string {
	var names []string
	for _, m := range a.hpa(c).Spec.Metrics {
		if m.External != nil {
			names = append(names, m.External.Metric.Name)
		}
	}
	return strings.Join(names, " ")
}

// toleranceLine is left out where the page says so.
var toleranceLine = regexp.MustCompile(`(?m)^ *tolerance: .*leave it out.*\n`)

// quickStart is a page whose objects are renamed to those of an app, at the address of the replicas
// of this suite.
type quickStart struct {
	*testing.T
	shell *terminal
	page  docpages.Page
}

func (q quickStart) renamed(text string) string {
	if !hasTolerance() {
		text = toleranceLine.ReplaceAllString(text, "")
	}
	return strings.NewReplacer("checkout", "app", "shop", "pages", "foresail-keda.foresail-system.svc:9600",
		shared.address).Replace(text)
}

// apply applies the one YAML block that contains a text.
func (q quickStart) apply(text string) {
	q.Helper()
	blocks := slices.DeleteFunc(q.page.Blocks(),
		func(b docpages.Block) bool { return b.Language != "yaml" || !strings.Contains(b.Text, text) })
	require.Len(q, blocks, 1, text)
	file := filepath.Join(q.shell.folder, "object.yaml")
	require.NoError(q, os.WriteFile(file, []byte(q.renamed(blocks[0].Text)), 0o600))
	q.shell.run(blocks[0].Where, "kubectl apply -f "+file)
}

// sh runs the shell blocks of the page, without those of Helm.
func (q quickStart) sh() {
	q.Helper()
	ran := 0
	for _, block := range q.page.Blocks() {
		if block.Language == "sh" && !strings.HasPrefix(block.Text, "helm ") {
			q.shell.run(block.Where, q.renamed(block.Text))
			ran++
		}
	}
	assert.GreaterOrEqual(q, ran, 2)
}

// prints runs the commands whose output the page shows, and compares the output.
func (q quickStart) prints() {
	q.Helper()
	ran := 0
	for _, block := range q.page.Blocks() {
		if block.Language != "" {
			continue
		}
		for shown := range strings.SplitSeq(strings.TrimPrefix("\n"+block.Text, "\n$ "), "\n$ ") {
			command, output, _ := strings.Cut(q.renamed(strings.TrimSuffix(shown, "\n")), "\n")
			assert.Equal(q, output, strings.TrimSpace(q.shell.run(block.Where, command)))
			ran++
		}
	}
	assert.NotZero(q, ran)
}

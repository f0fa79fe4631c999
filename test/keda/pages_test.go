//go:build long

package keda_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/internal/docpages"
	"github.com/foresail/foresail/test/kubectl"
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
	manifests, err := filepath.Abs("../../manifests")
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.Symlink(manifests, filepath.Join(folder, "manifests")))
	return &terminal{t, folder, filepath.Dir(program)}
}

func (t *terminal) run(where, script string) string {
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	command.Dir = t.folder
	command.Env = append(os.Environ(), "PATH="+t.path+":"+os.Getenv("PATH"), "KUBECONFIG="+shared.stack.Cluster.Kubeconfig())
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s\n%s", where, script, output)
	return string(output)
}

// certManagerKinds are those of cert-manager that the example has. Nothing acts on them: the tests make certificates themselves.
func certManagerKinds(t *testing.T) []byte {
	var kinds bytes.Buffer
	for _, kind := range []struct{ Kind, Scope string }{{"Certificate", "Namespaced"}, {"ClusterIssuer", "Cluster"}} {
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

// Every command and manifest of the pages on KEDA and on the doors does what they say, with the real kubectl and KEDA.
func TestPagesDoWhatTheySay(t *testing.T) {
	pages := map[string]docpages.Page{}
	for _, page := range docpages.Pages(t, "../..") {
		pages[filepath.Base(page.Path)] = page
	}
	shell := newTerminal(t)
	_, err := shared.stack.Cluster.Apply(t.Context(), certManagerKinds(t))
	require.NoError(t, err)
	commands := 0
	for _, page := range []docpages.Page{pages["keda.md"], pages["doors.md"]} {
		for _, block := range page.Blocks() {
			if block.Language == "sh" {
				shell.run(block.Where, block.Text)
				commands++
			}
		}
		for _, command := range page.Commands() {
			if command.Mention && command.Words[0] == "kubectl" {
				output := shell.run(command.Where, strings.Join(command.Words, " "))
				assert.Contains(t, output, "SERVICE")
				assert.Contains(t, output, "keda/keda-metrics-apiserver")
				commands++
			}
		}
	}
	assert.GreaterOrEqual(t, commands, 2)
	deployment, err := shared.stack.Cluster.Client().AppsV1().Deployments("foresail-system").Get(t.Context(), "foresail", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "registry.example.com/foresail:v1", deployment.Spec.Template.Spec.Containers[0].Image)
	assert.Contains(t, deployment.Spec.Template.Spec.Containers[0].Args, "--keda-address=:9600")

	// The ScaledObject of the page, for the application of this test, at the address of its replicas.
	blocks := pages["keda.md"].Blocks()
	i := slices.IndexFunc(blocks, func(b docpages.Block) bool { return strings.Contains(b.Text, "kind: ScaledObject") })
	require.GreaterOrEqual(t, i, 0)
	manifest := blocks[i].Text
	for from, to := range map[string]string{"checkout": "app", "foresail-keda.foresail-system.svc:9600": shared.address} {
		require.Contains(t, manifest, from)
		manifest = strings.ReplaceAll(manifest, from, to)
	}
	a := newApp(t, "pages", 2.5, func(a *app) { a.NoScaledObject = true })
	require.NoError(t, os.WriteFile(filepath.Join(shell.folder, "scaledobject.yaml"), []byte(manifest), 0o600))
	shell.run(blocks[i].Where, "kubectl -n pages apply -f scaledobject.yaml")
	a.HPA = "keda-hpa-app"
	a.becomesActive()
	a.carry(5.1)
	a.eventually(time.Minute, "there are as many pods as the load needs", func(c *assert.CollectT) { assert.GreaterOrEqual(c, a.replicas(c), 8) })
}

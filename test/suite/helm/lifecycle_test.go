package helm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/foresail/foresail/test/env/controlplane"
)

// patience is how long anything is waited for, on a crowded machine.
const patience = 2 * time.Minute

// site is a control plane that Foresail is installed on. It has no nodes, so its pods are never
// started: what counts is which objects there are, and whose.
type site struct {
	*controlplane.Cluster
	helm string
}

func start(t *testing.T, program string) site {
	t.Helper()
	cluster, err := controlplane.Start(context.WithoutCancel(t.Context()), controlplane.Options{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	return site{cluster, program}
}

// do runs Helm or kubectl as their users do.
func (s site) do(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	return string(output(t, program, append(arguments, "--kubeconfig", s.Kubeconfig())...))
}

func (s site) release(t *testing.T, verb string, arguments ...string) string {
	t.Helper()
	return s.do(t, s.helm, append([]string{verb, "foresail", "--namespace", namespace}, arguments...)...)
}

func (s site) replicas(t *testing.T) int32 {
	t.Helper()
	deployment, err := s.Client().AppsV1().Deployments(namespace).Get(t.Context(), "foresail", metav1.GetOptions{})
	require.NoError(t, err)
	return *deployment.Spec.Replicas
}

// TestInstallationsThroughTheirLives goes through what users do, first with the chart and then with
// the file of a release.
func TestInstallationsThroughTheirLives(t *testing.T) {
	s := start(t, current)
	releaseThroughItsLife(t, s)
	s.do(t, kubectlProgram, "delete", "-k", manifests+"/crds")
	t.Run("install.yaml", func(t *testing.T) { installManifestThroughItsLife(t, s) })
}

func releaseThroughItsLife(t *testing.T, s site) {
	s.defineForeignKinds(t)
	t.Run("install", func(t *testing.T) {
		notes := s.release(t, "install", folder, "--create-namespace")
		assert.Contains(t, notes, "kubectl -n "+namespace+" rollout status deployment/foresail")
		assert.Contains(t, notes, "kind: PredictedMetric")
		s.hasAll(t, "")
	})
	t.Run("upgrade to all parts", func(t *testing.T) {
		s.release(t, "upgrade", folder, "--values", file(t, everything))
		s.hasAll(t, everything)
		_, err := s.Client().AppsV1().Deployments(namespace).Get(t.Context(), "foresail", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "the StatefulSet replaces it: %v", err)
	})
	t.Run("what others write stays", func(t *testing.T) {
		s.writeAsControllersDo(t)
		s.release(t, "upgrade", folder, "--values", file(t, everything), "--set", "replicaCount=3")
		s.release(t, "upgrade", folder, "--values", file(t, everything), "--set", "replicaCount=4")
		assert.Equal(t, bundle, s.bundle(t))
		set, err := s.Client().AppsV1().StatefulSets(namespace).Get(t.Context(), "foresail", metav1.GetOptions{})
		require.NoError(t, err)
		assert.EqualValues(t, 4, *set.Spec.Replicas)
	})
	t.Run("roll back", func(t *testing.T) {
		s.release(t, "rollback", "1")
		s.hasAll(t, "")
		assert.EqualValues(t, 2, s.replicas(t))
		s.release(t, "upgrade", folder, "--set", "replicaCount=3")
		assert.EqualValues(t, 3, s.replicas(t))
	})
	t.Run("uninstall", func(t *testing.T) {
		s.release(t, "uninstall")
		s.onlyCRDsAreLeft(t)
	})
	t.Run("install again over CRDs that were kept", func(t *testing.T) {
		s.release(t, "install", folder)
		s.hasAll(t, "")
		s.release(t, "uninstall")
		s.onlyCRDsAreLeft(t)
	})
}

func installManifestThroughItsLife(t *testing.T, s site) {
	before, after := dist(t, "v1.2.3"), dist(t, "v1.2.4")
	apply := func(folder string) {
		s.do(t, kubectlProgram, "apply", "--server-side", "-f", filepath.Join(folder, "install.yaml"))
	}
	apply(before)
	assert.EqualValues(t, 2, s.replicas(t))
	s.writeAsControllersDo(t)
	apply(after)
	deployment, err := s.Client().AppsV1().Deployments(namespace).Get(t.Context(), "foresail", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "ghcr.io/foresail/foresail:v1.2.4", deployment.Spec.Template.Spec.Containers[0].Image)
	s.do(t, kubectlProgram, "delete", "-f", filepath.Join(after, "install.yaml"))
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, s.left(t)) }, patience, 200*time.Millisecond)

	packaged := filepath.Join(before, "foresail-1.2.3.tgz")
	output(t, current, "lint", "--strict", packaged)
	assert.Contains(t, string(output(t, current, "template", packaged)), "image: ghcr.io/foresail/foresail:v1.2.3\n")
}

// dist returns a folder with what `make dist` makes, but for archives.
func dist(t *testing.T, version string) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "dist")
	command := exec.CommandContext(t.Context(), "go", "run", ".", "--root", root, "--version", version, "--out", out)
	command.Dir, command.Env = filepath.Join(root, "internal/tools/release"), append(os.Environ(),
		"SOURCE_DATE_EPOCH=1793534400")
	said, err := command.CombinedOutput()
	require.NoError(t, err, string(said))
	return out
}

// hasAll fails the test unless the cluster has each object of the chart, as the release's own.
func (s site) hasAll(t *testing.T, values string) {
	t.Helper()
	text := render(t, s.helm, values)
	rendered := filepath.Join(t.TempDir(), "rendered.yaml")
	require.NoError(t, os.WriteFile(rendered, text, 0o600))
	var list unstructured.UnstructuredList
	require.NoError(t, json.Unmarshal([]byte(s.do(t, kubectlProgram, "get", "-f", rendered, "-o", "json",
		"--show-managed-fields")), &list))
	assert.Len(t, list.Items, strings.Count(string(text), "\nkind: "))
	for _, o := range list.Items {
		assert.Equal(t, "foresail", o.GetAnnotations()["meta.helm.sh/release-name"], "%s %s", o.GetKind(), o.GetName())
		managers := []string{}
		for _, entry := range o.GetManagedFields() {
			managers = append(managers, entry.Manager)
		}
		assert.Contains(t, managers, "helm", "%s %s", o.GetKind(), o.GetName())
	}
}

// onlyCRDsAreLeft waits until garbage has been collected.
func (s site) onlyCRDsAreLeft(t *testing.T) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, []string{
			"customresourcedefinitions predictedmetriccheckpoints.foresail.dev",
			"customresourcedefinitions predictedmetrics.foresail.dev",
			"customresourcedefinitions workerpools.foresail.dev",
		}, s.left(t))
	}, patience, 200*time.Millisecond)
}

// left lists what there is of Foresail: whatever has its label, wherever, and whatever is in its
// namespace but for what any namespace has.
func (s site) left(t *testing.T) []string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(s.RESTConfig())
	require.NoError(t, err)
	groups, err := client.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // of an APIService that leads nowhere
		require.NoError(t, err)
	}
	found := []string{}
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		require.NoError(t, err)
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Name == "events" {
				continue
			}
			list, err := s.Dynamic().Resource(version.WithResource(resource.Name)).List(t.Context(),
				metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // its definition has just gone
			}
			require.NoError(t, err, resource.Name)
			for _, o := range list.Items {
				inside := o.GetNamespace() == namespace && o.GetName() != "kube-root-ca.crt" &&
					(resource.Name != "serviceaccounts" || o.GetName() != "default")
				if inside || o.GetLabels()["app.kubernetes.io/part-of"] == "foresail" {
					found = append(found, strings.TrimSpace(resource.Name+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")))
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// bundle stands for what Foresail or cert-manager writes into the APIService.
const bundle = "TUlJ"

// writeAsControllersDo writes fields that are not the installer's, as their owners do.
func (s site) writeAsControllersDo(t *testing.T) {
	t.Helper()
	patches := map[schema.GroupVersionResource]struct{ namespace, name, patch string }{
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}: {"",
			"workerpools.foresail.dev", `{"metadata":{"annotations":{"example.com/seen":"yes"}}}`},
		{Version: "v1", Resource: "services"}: {namespace, "foresail",
			`{"metadata":{"annotations":{"example.com/seen":"yes"}}}`},
	}
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	if _, err := s.Dynamic().Resource(services).Get(t.Context(), apiService, metav1.GetOptions{}); err == nil {
		patches[services] = struct{ namespace, name, patch string }{"", apiService,
			fmt.Sprintf(`{"spec":{"caBundle":%q}}`, bundle)}
	}
	for resource, p := range patches {
		_, err := s.Dynamic().Resource(resource).Namespace(p.namespace).Patch(t.Context(), p.name, types.MergePatchType,
			[]byte(p.patch), metav1.PatchOptions{FieldManager: "another"})
		require.NoError(t, err, resource.Resource)
	}
}

const apiService = "v1beta1.external.metrics.k8s.io"

func (s site) bundle(t *testing.T) string {
	t.Helper()
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	o, err := s.Dynamic().Resource(services).Get(t.Context(), apiService, metav1.GetOptions{})
	require.NoError(t, err)
	value, _, err := unstructured.NestedString(o.Object, "spec", "caBundle")
	require.NoError(t, err)
	return value
}

// defineForeignKinds defines the kinds of cert-manager, KEDA and the Prometheus Operator. Nothing
// acts on them.
func (s site) defineForeignKinds(t *testing.T) {
	t.Helper()
	var kinds bytes.Buffer
	for _, kind := range []struct{ Group, Version, Kind, Scope string }{
		{"cert-manager.io", "v1", "Certificate", "Namespaced"},
		{"cert-manager.io", "v1", "Issuer", "Namespaced"},
		{"keda.sh", "v1alpha1", "ClusterTriggerAuthentication", "Cluster"},
		{"monitoring.coreos.com", "v1", "PodMonitor", "Namespaced"},
		{"monitoring.coreos.com", "v1", "PrometheusRule", "Namespaced"},
	} {
		require.NoError(t, foreignKind.Execute(&kinds, kind))
	}
	_, err := s.Apply(t.Context(), kinds.Bytes(), []byte(`
apiVersion: v1
kind: Namespace
metadata: {name: keda}
`))
	require.NoError(t, err)
}

var foreignKind = template.Must(template.New("").Funcs(template.FuncMap{"lower": strings.ToLower}).Parse(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: {{ lower .Kind }}s.{{ .Group }}}
spec:
  group: {{ .Group }}
  scope: {{ .Scope }}
  names: {kind: {{ .Kind }}, plural: {{ lower .Kind }}s, singular: {{ lower .Kind }}}
  versions:
  - name: {{ .Version }}
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`))

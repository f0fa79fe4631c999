package manifests_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// flags returns the values of a container's arguments by flag, with commas between those of a flag
// that is repeated. cmd/foresail has a test that the flags exist.
func flags(t *testing.T, container corev1.Container) map[string]string {
	t.Helper()
	require.NotEmpty(t, container.Args)
	require.Equal(t, "run", container.Args[0])
	found := map[string]string{}
	for _, arg := range container.Args[1:] {
		name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		require.True(t, ok, arg)
		if before, ok := found[name]; ok {
			value = before + "," + value
		}
		found[name] = value
	}
	return found
}

// mounted fails the test unless the folder of a path is where a pod's container has a volume, which
// it returns.
func mounted(t *testing.T, pod corev1.PodSpec, path string) corev1.Volume {
	t.Helper()
	for _, mount := range pod.Containers[0].VolumeMounts {
		if mount.MountPath != filepath.Dir(path) {
			continue
		}
		assert.True(t, mount.ReadOnly)
		for _, volume := range pod.Volumes {
			if volume.Name == mount.Name {
				return volume
			}
		}
	}
	t.Fatalf("nothing is mounted at %s", filepath.Dir(path))
	return corev1.Volume{}
}

func TestRemoteWriteRunsThePodsOfTheBase(t *testing.T) {
	rendered := render(t, "overlays/remote-write")
	assert.Empty(t, all[*appsv1.Deployment](rendered), "the StatefulSet replaces it")
	set := one[*appsv1.StatefulSet](t, rendered)
	base := one[*appsv1.Deployment](t, render(t, "base"))
	assert.Equal(t, base.Spec.Replicas, set.Spec.Replicas)
	assert.Equal(t, base.Spec.Selector, set.Spec.Selector)

	pod := &set.Spec.Template.Spec
	container := &pod.Containers[0]
	given := flags(t, *container)
	sources := mounted(t, *pod, given["remote-write-web-config-file"]).Projected.Sources
	require.Len(t, sources, 2)
	assert.Equal(t, "foresail-remote-write", sources[0].Secret.Name)
	assert.Nil(t, sources[0].Secret.Optional, "without it there is nothing to say who may write")
	assert.Equal(t, "foresail-remote-write-tls", sources[1].Secret.Name)
	assert.True(t, *sources[1].Secret.Optional)
	require.Len(t, pod.Volumes, 1)
	assert.Equal(t, fmt.Sprintf(":%d", remoteWritePort(t, *container).ContainerPort), given["remote-write-address"])
}

func remoteWritePort(t *testing.T, container corev1.Container) corev1.ContainerPort {
	t.Helper()
	for _, port := range container.Ports {
		if port.Name == "remote-write" {
			return port
		}
	}
	t.Fatal("the container has no port remote-write")
	return corev1.ContainerPort{}
}

func TestRemoteWriteHasAServiceForEachReplica(t *testing.T) {
	set := one[*appsv1.StatefulSet](t, render(t, "overlays/remote-write"))
	services := all[*corev1.Service](loadFile(t, "overlays/remote-write/services.yaml"))
	require.Len(t, services, int(*set.Spec.Replicas))
	for i, service := range services {
		pod := fmt.Sprintf("%s-%d", set.Name, i)
		assert.Equal(t, pod, service.Name)
		assert.Equal(t, set.Namespace, service.Namespace)
		want := map[string]string{appsv1.StatefulSetPodNameLabel: pod}
		maps.Copy(want, set.Spec.Template.Labels)
		assert.Equal(t, want, service.Spec.Selector)
		assert.True(t, service.Spec.PublishNotReadyAddresses,
			"a replica is not ready before it has been sent something")
		require.Len(t, service.Spec.Ports, 1)
		port := remoteWritePort(t, set.Spec.Template.Spec.Containers[0])
		assert.Equal(t, port.Name, service.Spec.Ports[0].TargetPort.StrVal)
		assert.Equal(t, port.ContainerPort, service.Spec.Ports[0].Port)
	}
}

// renderings are the objects that kubectl has made of kustomizations so far, by folder.
var renderings = map[string][]runtime.Object{}

// render returns what kubectl makes of a kustomization, except objects of cert-manager and KEDA.
// The objects are the caller's.
func render(t *testing.T, folder string) []runtime.Object {
	t.Helper()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl to render kustomizations with")
	}
	if renderings[folder] == nil {
		var complaints bytes.Buffer
		command := exec.CommandContext(t.Context(), kubectl, "kustomize", folder)
		command.Stderr = &complaints
		data, err := command.Output()
		require.NoError(t, err, complaints.String())
		require.Empty(t, complaints.String())
		renderings[folder] = decode(t, folder, data)
	}
	var objects []runtime.Object
	for _, object := range renderings[folder] {
		objects = append(objects, object.DeepCopyObject())
	}
	return objects
}

// template returns the pods that run Foresail, of the one Deployment or StatefulSet of that name.
func template(t *testing.T, rendered []runtime.Object) corev1.PodTemplateSpec {
	t.Helper()
	var found []corev1.PodTemplateSpec
	for _, deployment := range all[*appsv1.Deployment](rendered) {
		if deployment.Name == "foresail" {
			found = append(found, deployment.Spec.Template)
		}
	}
	for _, set := range all[*appsv1.StatefulSet](rendered) {
		found = append(found, set.Spec.Template)
	}
	require.Len(t, found, 1)
	return found[0]
}

// named returns the one object of a type that has a name.
func named[T interface {
	runtime.Object
	GetName() string
}](t *testing.T, objects []runtime.Object, name string) T {
	t.Helper()
	found := slices.DeleteFunc(all[T](objects), func(o T) bool { return o.GetName() != name })
	require.Len(t, found, 1, name)
	return found[0]
}

// TestKustomizationsRender also checks that whatever runs the pods, the rest of the base leads to them.
func TestKustomizationsRender(t *testing.T) {
	for _, folder := range []string{
		"base", "overlays/cert-manager", "overlays/prometheus-servers", "overlays/remote-write", "overlays/nodepool",
		"overlays/nodepool-simulated",
		"overlays/extender", "overlays/second-scheduler", "overlays/keda", "overlays/custom-metrics",
		"examples/combined", "examples/extender-certificates", "examples/keda-certificates",
	} {
		t.Run(folder, func(t *testing.T) {
			rendered := render(t, folder)
			pods := template(t, rendered)
			assert.Len(t, pods.Spec.Containers, 1)
			assert.Equal(t, named[*corev1.ServiceAccount](t, rendered, "foresail").Name, pods.Spec.ServiceAccountName)
			assert.Equal(t, pods.Labels, named[*policyv1.PodDisruptionBudget](t, rendered,
				"foresail").Spec.Selector.MatchLabels)
			shared := 0
			for _, service := range all[*corev1.Service](rendered) {
				if service.Name == "foresail" {
					shared++
					assert.Equal(t, pods.Labels, service.Spec.Selector)
				}
			}
			assert.Equal(t, 1, shared)
		})
	}
}

// TestComponentsCombine holds components to leave what others have added, whatever runs the pods.
func TestComponentsCombine(t *testing.T) {
	remoteWrite := []string{"remote-write-address", "remote-write-web-config-file"}
	servers := []string{"prometheus-config-file"}
	certificate := []string{"cert-dir", "metrics-cert-dir", "apiservice-inject-ca-from"}
	scaler := []string{"keda-address", "keda-cert-dir"}
	for folder, want := range map[string][]string{
		"overlays/custom-metrics": {"custom-metrics"},
		"overlays/keda":           scaler, "examples/keda-certificates": scaler,
		"base": nil, "overlays/remote-write": remoteWrite,
		"overlays/prometheus-servers": servers, "overlays/cert-manager": certificate,
		"overlays/nodepool": {"enable"}, "overlays/nodepool-simulated": {"enable"},
		"overlays/extender": nil, "overlays/second-scheduler": {"enable", "extender-address", "allow-anonymous"},
		"examples/forward":               {"forward-url", "forward-ca-file"},
		"examples/combined":              slices.Concat(remoteWrite, servers, certificate),
		"examples/extender-certificates": {"enable", "extender-address", "allow-anonymous", "extender-cert-dir"},
	} {
		t.Run(folder, func(t *testing.T) {
			rendered := render(t, folder)
			pod := template(t, rendered).Spec
			given := flags(t, pod.Containers[0])
			assert.ElementsMatch(t, want, slices.Collect(maps.Keys(given)))
			if path, ok := given["prometheus-config-file"]; ok {
				assert.Equal(t, "foresail-prometheus-servers", mounted(t, pod, path).Secret.SecretName)
			}
			if path, ok := given["forward-ca-file"]; ok {
				assert.Equal(t, "foresail-forward-ca", mounted(t, pod, path).ConfigMap.Name)
			}
			if folder, ok := given["cert-dir"]; ok {
				assert.Equal(t, "foresail-tls", mounted(t, pod, folder+"/"+corev1.TLSCertKey).Secret.SecretName)
				assert.Equal(t, folder, given["metrics-cert-dir"])
			}
			assert.Empty(t, all[*apiregistrationv1.APIService](rendered),
				"it would take external metrics from another server")
		})
	}
}

func TestCombinedExampleSetsImageAndResources(t *testing.T) {
	base, combined := template(t, load(t, "base")).Spec.Containers[0], template(t,
		render(t, "examples/combined")).Spec.Containers[0]
	assert.Equal(t, "registry.example.com/foresail:v1.2.3", combined.Image)
	for name, quantity := range base.Resources.Limits {
		assert.Positive(t, combined.Resources.Limits.Name(name, quantity.Format).Cmp(quantity), name)
	}
	for name, quantity := range base.Resources.Requests {
		assert.Positive(t, combined.Resources.Requests.Name(name, quantity.Format).Cmp(quantity), name)
	}
}

// TestRenderedAPIServicesAreVerified has the component apiservice with and without cert-manager.
func TestRenderedAPIServicesAreVerified(t *testing.T) {
	base, err := filepath.Abs(".")
	require.NoError(t, err)
	for name, c := range map[string]struct{ components, annotations string }{
		"by Foresail":     {"[apiservice]", ""},
		"by cert-manager": {"[apiservice, cert-manager]", "foresail-system/foresail"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			inside, err := filepath.Rel(folder, base)
			require.NoError(t, err)
			text := "resources: [" + inside + "/base]\ncomponents: " + strings.NewReplacer("[",
				"["+inside+"/components/", ", ", ", "+inside+"/components/").Replace(c.components)
			require.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600))
			api := one[*apiregistrationv1.APIService](t, render(t, folder))
			assert.Equal(t, c.annotations, api.Annotations["cert-manager.io/inject-ca-from"])
			assert.Equal(t, "foresail", api.Spec.Service.Name)
			assert.Empty(t, api.Spec.CABundle, "whoever writes it would find it emptied at each apply")
		})
	}
}

func TestNoManifestSkipsTheCheckOfCertificates(t *testing.T) {
	eachYAML(t, func(path string, text []byte) {
		assert.NotContains(t, string(text), "insecureSkipTLSVerify", path)
		assert.NotContains(t, string(text), "insecure-skip-tls-verify", path)
	})
}

// eachYAML calls back for each file of the manifests, those of the chart included.
func eachYAML(t *testing.T, check func(path string, text []byte)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		check(path, text)
		return err
	}))
}

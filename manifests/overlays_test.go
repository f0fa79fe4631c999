package manifests_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// flags returns the values of a container's arguments by flag. The test fails at one that the command does not have.
func flags(t *testing.T, container corev1.Container) map[string]string {
	t.Helper()
	require.NotEmpty(t, container.Args)
	require.Equal(t, "run", container.Args[0])
	source, err := os.ReadFile("../cmd/foresail/sources.go")
	require.NoError(t, err)
	found := map[string]string{}
	for _, arg := range container.Args[1:] {
		name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		require.True(t, ok, arg)
		require.Contains(t, string(source), fmt.Sprintf("%q", name), arg)
		found[name] = value
	}
	return found
}

// mounted fails the test unless a path is that of a file of a Secret.
func mounted(t *testing.T, pod corev1.PodSpec, path, secret string) {
	t.Helper()
	require.Len(t, pod.Volumes, 1)
	require.NotNil(t, pod.Volumes[0].Secret)
	assert.Equal(t, secret, pod.Volumes[0].Secret.SecretName)
	mounts := pod.Containers[0].VolumeMounts
	require.Len(t, mounts, 1)
	assert.Equal(t, pod.Volumes[0].Name, mounts[0].Name)
	assert.True(t, mounts[0].ReadOnly)
	assert.Equal(t, mounts[0].MountPath, filepath.Dir(path))
}

func TestRemoteWriteRunsThePodsOfTheBase(t *testing.T) {
	base := one[*appsv1.Deployment](t, load(t, "base"))
	set := one[*appsv1.StatefulSet](t, loadFile(t, "overlays/remote-write/statefulset.yaml"))
	assert.Equal(t, base.Namespace, set.Namespace)
	assert.Equal(t, base.Spec.Replicas, set.Spec.Replicas)
	assert.Equal(t, base.Spec.Selector, set.Spec.Selector)

	pod := &set.Spec.Template.Spec
	container := &pod.Containers[0]
	given := flags(t, *container)
	mounted(t, *pod, given["remote-write-web-config-file"], "foresail-remote-write")
	require.Len(t, container.Ports, 3)
	assert.Equal(t, fmt.Sprintf(":%d", container.Ports[2].ContainerPort), given["remote-write-address"])

	pod.Volumes, container.VolumeMounts = nil, nil
	container.Args, container.Ports = base.Spec.Template.Spec.Containers[0].Args, container.Ports[:2]
	assert.Equal(t, base.Spec.Template, set.Spec.Template, "nothing else differs")
}

func TestRemoteWriteHasAServiceForEachReplica(t *testing.T) {
	set := one[*appsv1.StatefulSet](t, loadFile(t, "overlays/remote-write/statefulset.yaml"))
	services := all[*corev1.Service](loadFile(t, "overlays/remote-write/services.yaml"))
	require.Len(t, services, int(*set.Spec.Replicas))
	for i, service := range services {
		pod := fmt.Sprintf("%s-%d", set.Name, i)
		assert.Equal(t, pod, service.Name)
		assert.Equal(t, set.Namespace, service.Namespace)
		want := map[string]string{appsv1.StatefulSetPodNameLabel: pod}
		maps.Copy(want, set.Spec.Template.Labels)
		assert.Equal(t, want, service.Spec.Selector)
		assert.True(t, service.Spec.PublishNotReadyAddresses, "a replica is not ready before it has been sent something")
		require.Len(t, service.Spec.Ports, 1)
		port := set.Spec.Template.Spec.Containers[0].Ports[2]
		assert.Equal(t, port.Name, service.Spec.Ports[0].TargetPort.StrVal)
		assert.Equal(t, port.ContainerPort, service.Spec.Ports[0].Port)
	}
}

func TestRemoteWriteDeletesTheDeployment(t *testing.T) {
	data, err := os.ReadFile("overlays/remote-write/deployment.yaml")
	require.NoError(t, err)
	var patch map[string]any
	require.NoError(t, yaml.Unmarshal(data, &patch))
	base := one[*appsv1.Deployment](t, load(t, "base"))
	assert.Equal(t, map[string]any{
		"$patch": "delete", "apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": base.Name, "namespace": base.Namespace},
	}, patch)
}

func TestPrometheusServersAreMounted(t *testing.T) {
	base := one[*appsv1.Deployment](t, load(t, "base"))
	patch := one[*appsv1.Deployment](t, loadFile(t, "overlays/prometheus-servers/deployment.yaml"))
	assert.Equal(t, base.Name, patch.Name)
	assert.Equal(t, base.Namespace, patch.Namespace)
	pod := patch.Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	assert.Equal(t, base.Spec.Template.Spec.Containers[0].Name, pod.Containers[0].Name)
	mounted(t, pod, flags(t, pod.Containers[0])["prometheus-config-file"], "foresail-prometheus-servers")
}

// render returns what kubectl makes of a kustomization.
func render(t *testing.T, folder string) []runtime.Object {
	t.Helper()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl to render kustomizations with")
	}
	var complaints bytes.Buffer
	command := exec.CommandContext(t.Context(), kubectl, "kustomize", folder)
	command.Stderr = &complaints
	data, err := command.Output()
	require.NoError(t, err, complaints.String())
	assert.Empty(t, complaints.String())
	return decode(t, folder, data)
}

// TestKustomizationsRender also checks that whatever runs the pods, the rest of the base leads to them.
func TestKustomizationsRender(t *testing.T) {
	for folder, stateful := range map[string]bool{"base": false, "overlays/prometheus-servers": false, "overlays/remote-write": true} {
		t.Run(folder, func(t *testing.T) {
			rendered := render(t, folder)
			var template corev1.PodTemplateSpec
			if stateful {
				assert.Empty(t, all[*appsv1.Deployment](rendered))
				template = one[*appsv1.StatefulSet](t, rendered).Spec.Template
			} else {
				template = one[*appsv1.Deployment](t, rendered).Spec.Template
			}
			assert.Len(t, template.Spec.Containers, 1)
			assert.Equal(t, one[*corev1.ServiceAccount](t, rendered).Name, template.Spec.ServiceAccountName)
			assert.Equal(t, template.Labels, one[*policyv1.PodDisruptionBudget](t, rendered).Spec.Selector.MatchLabels)
			shared := 0
			for _, service := range all[*corev1.Service](rendered) {
				if service.Name == "foresail" {
					shared++
					assert.Equal(t, template.Labels, service.Spec.Selector)
				}
			}
			assert.Equal(t, 1, shared)
		})
	}
}

package manifests_test

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/adapter/scheduler/extender"
)

// schedulerConfiguration decodes what a scheduler is started with. Fields that there are not fail
// the test, those of arguments of plugins too.
func schedulerConfiguration(t *testing.T, data []byte) *schedulerv1.KubeSchedulerConfiguration {
	t.Helper()
	known := runtime.NewScheme()
	require.NoError(t, schedulerv1.AddToScheme(known))
	strict := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := strict.Decode(data, nil, nil)
	require.NoError(t, err)
	configuration, ok := object.(*schedulerv1.KubeSchedulerConfiguration)
	require.True(t, ok, "%T", object)
	require.NoError(t, configuration.DecodeNestedObjects(strict))
	return configuration
}

// schedulerFile decodes a file for a scheduler.
func schedulerFile(t *testing.T, path string) *schedulerv1.KubeSchedulerConfiguration {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return schedulerConfiguration(t, data)
}

const (
	firstScheduler  = "scheduler/kubescheduler.yaml"
	secondScheduler = "overlays/second-scheduler/configuration/kubescheduler.yaml"
)

func TestSchedulersAskAsTheExtenderAnswers(t *testing.T) {
	for _, file := range []string{firstScheduler, secondScheduler} {
		t.Run(file, func(t *testing.T) {
			c := schedulerFile(t, file)
			require.Len(t, c.Extenders, 1)
			e := c.Extenders[0]
			address, err := url.Parse(e.URLPrefix)
			require.NoError(t, err)
			assert.Equal(t, "https", address.Scheme)
			assert.Equal(t, "9443", address.Port())
			assert.Equal(t, extender.Prefix, address.Path)
			assert.Equal(t, "filter", e.FilterVerb)
			assert.Equal(t, "prioritize", e.PrioritizeVerb)
			assert.Empty(t, e.BindVerb+e.PreemptVerb)
			assert.Empty(t, e.ManagedResources, "all pods are asked about")
			assert.True(t, e.NodeCacheCapable)
			assert.True(t, e.EnableHTTPS)
			assert.True(t, e.Ignorable)
			assert.Equal(t, 200*time.Millisecond, e.HTTPTimeout.Duration)
			assert.True(t, *c.LeaderElection.LeaderElect)
			assert.Equal(t, float32(200), c.ClientConnection.QPS,
				"at the default binds trail what is decided by more than it counts")
			assert.Equal(t, int32(400), c.ClientConnection.Burst)

			require.Len(t, c.Profiles, 1)
			require.Len(t, c.Profiles[0].PluginConfig, 1)
			fit, ok := c.Profiles[0].PluginConfig[0].Args.Object.(*schedulerv1.NodeResourcesFitArgs)
			require.True(t, ok)
			assert.Equal(t, schedulerv1.MostAllocated, fit.ScoringStrategy.Type, "the default works against packing")
		})
	}
}

// TestWeightOutweighsWhatFillsNodes holds the weight to the reason that is given for it.
func TestWeightOutweighsWhatFillsNodes(t *testing.T) {
	const empty, others, spreading, point = 7, 300, 200, 10
	weight := schedulerFile(t, firstScheduler).Extenders[0].Weight
	assert.Greater(t, empty*point*weight, int64(others))
	assert.LessOrEqual(t, empty*point*(weight-1), int64(others), "the least that does")
	assert.Less(t, (10-empty)*point*weight, int64(spreading))
}

func TestTheSecondSchedulerDiffersInItsPlaceAlone(t *testing.T) {
	first, second := schedulerFile(t, firstScheduler), schedulerFile(t, secondScheduler)
	assert.Equal(t, "foresail-scheduler", *second.Profiles[0].SchedulerName)
	assert.Equal(t, "foresail-scheduler", second.LeaderElection.ResourceName)
	assert.Empty(t, second.ClientConnection.Kubeconfig, "it is a pod")
	assert.Equal(t, "/etc/kubernetes/scheduler.conf", first.ClientConnection.Kubeconfig, "as kubeadm has it")
	assert.Equal(t, "default-scheduler", *first.Profiles[0].SchedulerName)

	second.Profiles[0].SchedulerName = first.Profiles[0].SchedulerName
	second.LeaderElection, second.ClientConnection.Kubeconfig = first.LeaderElection, first.ClientConnection.Kubeconfig
	second.Extenders[0].URLPrefix = first.Extenders[0].URLPrefix
	assert.Equal(t, first, second)
}

func TestTheDaemonSetAnswersTheSchedulerOfItsHost(t *testing.T) {
	rendered := render(t, "overlays/extender")
	set := one[*appsv1.DaemonSet](t, rendered)
	pod := set.Spec.Template
	assert.True(t, pod.Spec.HostNetwork)
	assert.Equal(t, "privileged", one[*corev1.Namespace](t, rendered).Labels["pod-security.kubernetes.io/enforce"],
		"or such pods are refused")
	given := flags(t, pod.Spec.Containers[0])
	assert.Equal(t, "extender", given["enable"], "pods and pools are the Deployment's")
	assert.Equal(t, schedulerFile(t, firstScheduler).Extenders[0].URLPrefix,
		"https://"+given["extender-address"]+extender.Prefix)
	ports := map[string]corev1.ContainerPort{}
	for _, p := range pod.Spec.Containers[0].Ports {
		ports[p.Name] = p
	}
	assert.Equal(t, given["extender-address"],
		fmt.Sprintf("%s:%d", ports["extender"].HostIP, ports["extender"].ContainerPort))
	assert.Equal(t, given["http-address"], fmt.Sprintf(":%d", ports["http"].ContainerPort))
	assert.Equal(t, given["metrics-address"], fmt.Sprintf(":%d", ports["metrics"].ContainerPort))
	assert.NotContains(t, given, "allow-anonymous", "processes of the host alone can ask")

	own := labels.Set(pod.Labels)
	assert.True(t, labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(own))
	for _, service := range all[*corev1.Service](rendered) {
		assert.False(t, labels.SelectorFromSet(service.Spec.Selector).Matches(own),
			"%s would send it what it does not serve", service.Name)
	}
	for _, budget := range all[*policyv1.PodDisruptionBudget](rendered) {
		assert.False(t, labels.SelectorFromSet(budget.Spec.Selector.MatchLabels).Matches(own), budget.Name)
	}
	base := one[*appsv1.Deployment](t, load(t, "base")).Spec.Template.Spec
	container := pod.Spec.Containers[0]
	container.Args, container.Ports = base.Containers[0].Args, base.Containers[0].Ports
	assert.Empty(t, base.Containers[0].VolumeMounts)
	base.Containers[0].VolumeMounts = container.VolumeMounts
	assert.Equal(t, base.Containers[0], container, "nothing else differs")
	assert.Equal(t, base.SecurityContext, pod.Spec.SecurityContext)
	assert.Equal(t, []string{"foresail-extender", "system:auth-delegator"},
		clusterRolesOf(rendered, pod.Spec.ServiceAccountName))
}

func TestDaemonSetRunsOnControlPlaneNodes(t *testing.T) {
	pod := one[*appsv1.DaemonSet](t, render(t, "overlays/extender")).Spec.Template
	affinity := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: pod.Spec})
	const role = "node-role.kubernetes.io/control-plane"
	for name, test := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"kubeadm": {map[string]string{role: ""}, true},
		"K3s":     {map[string]string{role: "true"}, true},
		"worker":  {map[string]string{"node-role.kubernetes.io/worker": ""}, false},
	} {
		runs, err := affinity.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: test.labels}})
		require.NoError(t, err)
		assert.Equal(t, test.want, runs, name)
	}
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		for _, value := range []string{"", "true"} {
			taints := []corev1.Taint{{Key: role, Value: value, Effect: effect}}
			_, untolerated := schedulingv1.FindMatchingUntoleratedTaint(logr.Discard(), taints, pod.Spec.Tolerations,
				nil, false)
			assert.False(t, untolerated, "%s=%s:%s", role, value, effect)
		}
	}
}

// clusterRolesOf are the ClusterRoles that an account of Foresail's namespace has.
func clusterRolesOf(objects []runtime.Object, account string) []string {
	var found []string
	for _, b := range all[*rbacv1.ClusterRoleBinding](objects) {
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Name == account &&
				s.Namespace == "foresail-system"
		}) {
			found = append(found, b.RoleRef.Name)
		}
	}
	slices.Sort(found)
	return found
}

func TestTheComponentIsReachedAtItsService(t *testing.T) {
	rendered := render(t, "overlays/second-scheduler")
	pods := template(t, rendered)
	given := flags(t, pods.Spec.Containers[0])
	assert.Equal(t, "adapter,extender", given["enable"])
	service := named[*corev1.Service](t, rendered, "foresail-extender")
	assert.Equal(t, pods.Labels, service.Spec.Selector)
	require.Len(t, service.Spec.Ports, 1)
	ports := map[string]int32{}
	for _, p := range pods.Spec.Containers[0].Ports {
		ports[p.Name] = p.ContainerPort
	}
	assert.Len(t, ports, 4, "those of the base are still there")
	assert.Equal(t, "extender", given["allow-anonymous"], "it has no certificates")
	assert.Equal(t, given["extender-address"], fmt.Sprintf(":%d", ports[service.Spec.Ports[0].TargetPort.StrVal]),
		"on 127.0.0.1 no other pod would reach it")
	want := fmt.Sprintf("https://%s.%s.svc:%d%s", service.Name, service.Namespace, service.Spec.Ports[0].Port,
		extender.Prefix)
	assert.Equal(t, want, schedulerFile(t, secondScheduler).Extenders[0].URLPrefix)
	assert.Contains(t, clusterRolesOf(rendered, pods.Spec.ServiceAccountName), "foresail-extender")
}

func TestOnlyTheSchedulerReachesTheExtender(t *testing.T) {
	rendered := render(t, "overlays/second-scheduler")
	pods := template(t, rendered)
	scheduler := named[*appsv1.Deployment](t, rendered, "foresail-scheduler").Spec.Template
	sources := reachedFrom(t, rendered)
	require.Len(t, sources["extender"], 1)
	from := sources["extender"][0]
	assert.Nil(t, from.NamespaceSelector, "of the same namespace")
	assert.Nil(t, from.IPBlock)
	assert.True(t, labels.SelectorFromSet(from.PodSelector.MatchLabels).Matches(labels.Set(scheduler.Labels)))
	assert.False(t, labels.SelectorFromSet(from.PodSelector.MatchLabels).Matches(labels.Set(pods.Labels)))
}

// TestCertificatesAreOfBothSides holds the example to what the two are told of each other, and to
// the overlay in all else.
func TestCertificatesAreOfBothSides(t *testing.T) {
	const example = "examples/extender-certificates"
	rendered := render(t, example)
	foresail, scheduler := template(t, rendered), named[*appsv1.Deployment](t, rendered,
		"foresail-scheduler").Spec.Template
	given := flags(t, foresail.Spec.Containers[0])
	assert.Equal(t, "foresail-extender-tls",
		mounted(t, foresail.Spec, given["extender-cert-dir"]+"/"+corev1.TLSCertKey).Secret.SecretName)
	assert.Equal(t, "extender,", given["allow-anonymous"], "an empty one takes back those before it")
	secured := schedulerFile(t, example+"/configuration/kubescheduler.yaml")
	assert.Equal(t, secured, schedulerConfiguration(t,
		[]byte(one[*corev1.ConfigMap](t, rendered).Data["kubescheduler.yaml"])))
	known := secured.Extenders[0].TLSConfig
	assert.False(t, known.Insecure)
	for path, file := range map[string]string{known.CertFile: corev1.TLSCertKey, known.KeyFile: corev1.TLSPrivateKeyKey,
		known.CAFile: "ca.crt"} {
		assert.Equal(t, "foresail-scheduler-tls", mounted(t, scheduler.Spec, path).Secret.SecretName)
		assert.Equal(t, file, filepath.Base(path))
	}
	plain := schedulerFile(t, secondScheduler)
	assert.True(t, plain.Extenders[0].TLSConfig.Insecure)
	secured.Extenders[0].TLSConfig = plain.Extenders[0].TLSConfig
	assert.Equal(t, plain, secured, "nothing else differs")

	certificates := certificatesOf(t, example+"/certificates.yaml")
	host, err := url.Parse(plain.Extenders[0].URLPrefix)
	require.NoError(t, err)
	assert.Equal(t, []string{host.Hostname()}, certificates["foresail-extender-tls"].DNSNames)
	assert.Contains(t, certificates["foresail-extender-tls"].Usages, "server auth")
	assert.Contains(t, certificates["foresail-scheduler-tls"].Usages, "client auth")
	assert.NotContains(t, certificates["foresail-extender-tls"].Usages, "client auth")
	assert.Equal(t, extender.DefaultClientName, certificates["foresail-scheduler-tls"].CommonName)
	assert.Len(t, certificates, 2)
}

// certificate is what is held to something of a Certificate of cert-manager.
type certificate struct {
	SecretName string   `json:"secretName"`
	CommonName string   `json:"commonName"`
	DNSNames   []string `json:"dnsNames"`
	Usages     []string `json:"usages"`
}

// certificatesOf are those of a file, by their Secrets.
func certificatesOf(t *testing.T, path string) map[string]certificate {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	found := map[string]certificate{}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var o struct{ Spec certificate }
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		found[o.Spec.SecretName] = o.Spec
	}
	return found
}

// TestPodsMayBeCritical is about clusters that refuse critical pods where no quota allows them.
func TestPodsMayBeCritical(t *testing.T) {
	for _, folder := range []string{"base", "overlays/remote-write", "overlays/extender", "overlays/second-scheduler"} {
		rendered := render(t, folder)
		quota := one[*corev1.ResourceQuota](t, rendered)
		assert.Equal(t, one[*corev1.Namespace](t, rendered).Name, quota.Namespace)
		require.Len(t, quota.Spec.ScopeSelector.MatchExpressions, 1)
		scope := quota.Spec.ScopeSelector.MatchExpressions[0]
		assert.Equal(t, corev1.ResourceQuotaScopePriorityClass, scope.ScopeName)
		assert.Equal(t, corev1.ScopeSelectorOpIn, scope.Operator)
		assert.Equal(t, []corev1.ResourceName{corev1.ResourcePods}, slices.Collect(maps.Keys(quota.Spec.Hard)),
			"another would have pods refused that do not request it")

		classes := []string{template(t, rendered).Spec.PriorityClassName}
		for _, set := range all[*appsv1.DaemonSet](rendered) {
			classes = append(classes, set.Spec.Template.Spec.PriorityClassName)
		}
		for _, deployment := range all[*appsv1.Deployment](rendered) {
			classes = append(classes, deployment.Spec.Template.Spec.PriorityClassName)
		}
		for _, class := range classes {
			assert.Equal(t, scope.Values, []string{class}, folder)
		}
	}
}

func TestTheSecondSchedulerRuns(t *testing.T) {
	rendered := render(t, "overlays/second-scheduler")
	deployment := named[*appsv1.Deployment](t, rendered, "foresail-scheduler")
	pod := deployment.Spec.Template
	container := pod.Spec.Containers[0]
	assert.True(t, strings.HasPrefix(container.Image, "registry.k8s.io/kube-scheduler:v1."), container.Image)
	assert.Equal(t, []string{"kube-scheduler"}, container.Command)
	require.Len(t, container.Args, 1)
	path, ok := strings.CutPrefix(container.Args[0], "--config=")
	require.True(t, ok)
	maps := all[*corev1.ConfigMap](rendered)
	require.Len(t, maps, 1)
	assert.Equal(t, maps[0].Name, mounted(t, pod.Spec, path).ConfigMap.Name,
		"another content is another name, and so a rollout")
	assert.Equal(t, schedulerFile(t, secondScheduler),
		schedulerConfiguration(t, []byte(maps[0].Data[filepath.Base(path)])))

	assert.Equal(t, deployment.Spec.Selector.MatchLabels,
		named[*policyv1.PodDisruptionBudget](t, rendered, "foresail-scheduler").Spec.Selector.MatchLabels)
	service := named[*corev1.Service](t, rendered, "foresail")
	assert.False(t, labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)))
	account := named[*corev1.ServiceAccount](t, rendered, pod.Spec.ServiceAccountName)
	assert.Equal(t, []string{"system:kube-scheduler", "system:volume-scheduler"},
		clusterRolesOf(rendered, account.Name))
	configuration := schedulerFile(t, secondScheduler)
	role := named[*rbacv1.Role](t, rendered, "foresail-scheduler")
	assert.Equal(t, configuration.LeaderElection.ResourceNamespace, role.Namespace)
	assert.Equal(t, []string{configuration.LeaderElection.ResourceName}, role.Rules[1].ResourceNames)
	assert.Equal(t, 4, checkBindings(t, loadFile(t, "overlays/second-scheduler/rbac.yaml"),
		[]rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}))
	for _, p := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		assert.Equal(t, corev1.URISchemeHTTPS, p.HTTPGet.Scheme)
		assert.Equal(t, container.Ports[0].Name, p.HTTPGet.Port.StrVal)
	}
}

// TestWordsOfEnableAddUp combines the components of everything that Foresail does.
func TestWordsOfEnableAddUp(t *testing.T) {
	folder := t.TempDir()
	here, err := os.Getwd()
	require.NoError(t, err)
	var text strings.Builder
	text.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n")
	up, err := filepath.Rel(folder, here)
	require.NoError(t, err)
	fmt.Fprintf(&text, "- %s/base\ncomponents:\n- %s/components/nodepool\n- %s/components/extender\n", up, up, up)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text.String()), 0o600))
	pod := template(t, render(t, folder)).Spec
	assert.Equal(t, "adapter,nodepool,adapter,extender", flags(t, pod.Containers[0])["enable"])
}

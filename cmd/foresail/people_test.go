package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/ports"
)

// TestPeopleReachReplicasThroughTheAPIServer has people with no rights but the Roles for them ask a
// replica that is a pod, by port-forward of a real API server. Each right is then taken away once.
// kwok plays the kubelet.
func TestPeopleReachReplicasThroughTheAPIServer(t *testing.T) {
	free := freePorts(t, 4)
	open, answers, served, secure := free[0], free[1], free[2], free[3]
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{Nodes: 1, Progress: os.Stderr, Stages: fmt.Appendf(nil, `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata: {name: foresail}
spec:
  selector: {matchNamespaces: [foresail-system]}
  forwards:
  - {ports: [%d], target: {address: 127.0.0.1, port: %[1]d}}
`, served)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	clitest.WithDefinitions(t, cluster, "../../manifests")
	applyManifests(t, cluster, "base/namespace.yaml", "base/serviceaccount.yaml", "components/dashboard/rbac.yaml",
		"components/extender-rights/rbac.yaml", "base/rbac-users.yaml", "components/nodepool/rbac.yaml", "examples/predictedmetric.yaml")
	askWhatEditorsMay(t, cluster)
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		nodesOfPrometheus(answer, r)
		_, _ = w.Write(bytes.ReplaceAll(answer.Body.Bytes(), []byte("10.0.0.1:9100"), []byte("node-1")))
	}))
	defer prometheus.Close()
	cert, _, err := cluster.ServingCertificate("localhost", "127.0.0.1")
	require.NoError(t, err)
	t.Setenv("FORESAIL_TEST_OPTIONS", "extender-warm-up=0s")
	p := runAside(t, "run", "--enable", "adapter,extender", "--dashboard", "--kubeconfig", cluster.Kubeconfig(),
		"--apiservice=none", "--leader-elect=false",
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(secure), "--http-address",
		fmt.Sprintf("127.0.0.1:%d", open),
		"--extender-address", fmt.Sprintf("127.0.0.1:%d", answers), "--prometheus", prometheus.URL,
		"--extender-cpu-query", cpuOfNodes, "--extender-memory-query", memoryOfNodes,
		"--metrics-address", fmt.Sprintf("127.0.0.1:%d", served), "--metrics-cert-dir", filepath.Dir(cert))
	clitest.Eventually(t, func() bool {
		require.False(t, p.hasEnded(), "it has ended: %s", p.stderr)
		return clitest.Status(t, open, "/readyz") == http.StatusOK
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "checkout", UID: "uid-1",
		CreationTimestamp: metav1.Now()}}
	var scores extenderv1.HostPriorityList
	require.True(t, asScheduler(t, answers, "prioritize",
		extenderv1.ExtenderArgs{Pod: pod, NodeNames: &[]string{"node-1"}}, &scores))
	addReplica(t, cluster, corev1.ContainerPort{Name: "metrics", ContainerPort: int32(served)},
		corev1.ContainerPort{Name: "extender", ContainerPort: int32(answers)})

	askPerson(t, cluster, "foresail-explain", func(kubeconfig string) (said string, ok bool) {
		code, stdout, stderr := foresail(t, "", "explain", "pod", "checkout", "-n", "default", "--kubeconfig",
			kubeconfig)
		return stdout + stderr, code == cli.ExitDone && strings.Contains(stdout, "node-1")
	})
	askPerson(t, cluster, "foresail-dashboard", func(kubeconfig string) (said string, ok bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		output := &endsOnceOpen{end: cancel}
		code := cli.Execute(ctx, newRoot(time.Now), []string{"dashboard", "--kubeconfig", kubeconfig}, nil, output,
			output)
		return output.String(), code == cli.ExitDone &&
			!strings.Contains(output.String(), "PredictedMetrics are not shown")
	})
	p.end(t)
	_, _, stderr := foresail(t, "", "explain", "pod", "checkout", "-n", "default", "--kubeconfig", cluster.Kubeconfig())
	assert.Regexp(t, "^foresail explain pod: ask the pod foresail-system/foresail-0: .*connection refused\n$", stderr,
		"what the kubelet says")
}

// askWhatEditorsMay asks what the roles view and edit of Kubernetes include, which the controller
// manager joins from those of Foresail.
func askWhatEditorsMay(t *testing.T, cluster *controlplane.Cluster) {
	t.Helper()
	api := cluster.Client()
	bind := func(user, role string) ([]rbacv1.Subject, metav1.ObjectMeta, rbacv1.RoleRef) {
		return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName,
				Name: user}}, metav1.ObjectMeta{Name: user},
			rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	}
	for user, role := range map[string]string{"viewer": "view", "editor": "edit"} {
		subjects, meta, ref := bind(user, role)
		_, err := api.RbacV1().RoleBindings("default").Create(t.Context(),
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for user, role := range map[string]string{"viewer-of-all": "view", "editor-of-all": "edit"} {
		subjects, meta, ref := bind(user, role)
		_, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	may := func(user, namespace, verb, resource string) bool {
		resource, subresource, _ := strings.Cut(resource, "/")
		review, err := api.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb,
					Group: "foresail.dev", Resource: resource, Subresource: subresource},
			}}, metav1.CreateOptions{})
		require.NoError(t, err)
		return review.Status.Allowed
	}
	const reads, writes = "get list watch", "create update patch delete deletecollection"
	for _, c := range []struct {
		users, namespace   string // "" for what is of no namespace
		resource           string
		allowed, forbidden string
	}{
		{"viewer viewer-of-all", "default", "predictedmetrics", reads, writes},
		{"viewer viewer-of-all", "default", "predictedmetriccheckpoints", reads, writes},
		{"editor editor-of-all", "default", "predictedmetrics", reads + " " + writes, ""},
		{"editor editor-of-all", "default", "predictedmetrics/status", "", writes},
		{"editor editor-of-all", "default", "predictedmetriccheckpoints", reads + " delete deletecollection",
			"create update patch"},
		{"viewer editor", "", "workerpools", "", reads + " " + writes},
		{"viewer-of-all editor-of-all", "", "workerpools", reads, writes},
	} {
		for user := range strings.FieldsSeq(c.users) {
			for verb := range strings.FieldsSeq(c.allowed) {
				// once the roles are joined
				clitest.Eventually(t, func() bool { return may(user, c.namespace, verb, c.resource) })
			}
			for verb := range strings.FieldsSeq(c.forbidden) {
				assert.False(t, may(user, c.namespace, verb, c.resource), "%s: %s %s", user, verb, c.resource)
			}
		}
	}
	assert.False(t, may("editor", "elsewhere", "create", "predictedmetrics"))
}

// endsOnceOpen ends the command foresail dashboard once it has a page.
type endsOnceOpen struct {
	strings.Builder
	end func()
}

func (e *endsOnceOpen) Write(text []byte) (int, error) {
	defer func() {
		if strings.HasSuffix(e.String(), "Ctrl-C ends it.\n") {
			e.end()
		}
	}()
	return e.Builder.Write(text)
}

// addReplica adds the pod that a process stands for, and waits until it runs.
func addReplica(t *testing.T, cluster *controlplane.Cluster, ports ...corev1.ContainerPort) {
	t.Helper()
	pod := clitest.ForesailPod("foresail-0")
	pod.Labels = map[string]string{"app.kubernetes.io/name": "foresail"}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: new(false),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	pod.Spec.Containers[0].Image = "foresail"
	pod.Spec.Containers[0].Ports = ports
	pods := cluster.Client().CoreV1().Pods(pod.Namespace)
	_, err := pods.Create(t.Context(), &pod, metav1.CreateOptions{})
	require.NoError(t, err)
	clitest.Eventually(t, func() bool {
		now, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		require.NoError(t, err)
		return now.Status.Phase == corev1.PodRunning
	})
}

// askPerson has a user with no rights but those of a Role ask, and takes each of them away once.
func askPerson(t *testing.T, cluster *controlplane.Cluster, role string,
	ask func(kubeconfig string) (said string, ok bool)) {
	t.Helper()
	user, roles := "with-"+role, cluster.Client().RbacV1().Roles("foresail-system")
	kubeconfig := withRole(t, cluster, user, role)
	whole, err := roles.Get(t.Context(), role, metav1.GetOptions{})
	require.NoError(t, err)
	var rights []rbacv1.PolicyRule
	for _, rule := range whole.Rules {
		rights = append(rights, validation.BreakdownRule(rule)...)
	}
	become := func(rules []rbacv1.PolicyRule) {
		whole.Rules = rules
		whole, err = roles.Update(t.Context(), whole, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	var said string
	works := func() (ok bool) { // the API server knows of a change after some milliseconds
		said, ok = ask(kubeconfig)
		return ok
	}
	for i, right := range rights {
		become(slices.Delete(slices.Clone(rights), i, i+1))
		if right.Verbs[0] == "get" && right.Resources[0] == "pods/portforward" {
			assert.True(t, works(), "SPDY goes without: it is for WebSockets, where a proxy knows no better: %s", said)
			become(rights)
			continue
		}
		clitest.Eventually(t, func() bool { return !works() })
		assert.Contains(t, said, fmt.Sprintf("User %q cannot %s resource %q", user, right.Verbs[0], right.Resources[0]))
		become(rights)
		clitest.Eventually(t, works)
	}
}

// withRole returns the kubeconfig of a user whose only rights are those of a Role of Foresail's namespace.
func withRole(t *testing.T, cluster *controlplane.Cluster, user, role string) (kubeconfig string) {
	t.Helper()
	_, err := cluster.Client().RbacV1().RoleBindings("foresail-system").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	kubeconfig, err = cluster.KubeconfigFor(user)
	require.NoError(t, err)
	return kubeconfig
}

// applyManifests applies files below manifests/.
func applyManifests(t *testing.T, cluster *controlplane.Cluster, paths ...string) {
	t.Helper()
	for _, path := range paths {
		content, err := os.ReadFile("../../manifests/" + path)
		require.NoError(t, err)
		_, err = cluster.Apply(t.Context(), content)
		require.NoError(t, err)
	}
}

// freePorts takes n ports of this host.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	free := make([]int, n)
	for i := range free {
		var err error
		free[i], err = ports.Take()
		require.NoError(t, err)
	}
	return free
}

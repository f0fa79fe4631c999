package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
)

// shells are those that completion has a script for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// as executes a command line as a binary of a name.
func as(t *testing.T, argv ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	root := newRoot(time.Now)
	code = cli.Execute(t.Context(), root, cli.InvokedAs(root, argv), strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

func TestHelpSaysWhatPeopleType(t *testing.T) {
	for _, name := range []string{"/home/ada/.krew/bin/kubectl-foresail", "kubectl-foresail.exe"} {
		for _, args := range [][]string{{}, {"explain", "predictedmetric", "--help"}, {"hpa", "--help"}} {
			code, out, _ := as(t, append([]string{name}, args...)...)
			require.Equal(t, cli.ExitDone, code)
			_, usage, ok := strings.Cut(out, "Usage:")
			require.True(t, ok)
			assert.NotRegexp(t, `(?m)(^ *|\| )foresail `, usage, args)
			assert.Contains(t, usage, "  kubectl foresail ", args)
		}
		code, _, stderr := as(t, name, "explain", "predictedmetric", "a", "b")
		assert.Equal(t, cli.ExitUsage, code)
		assert.Contains(t, stderr, "Run 'kubectl foresail explain predictedmetric --help'")
	}
	_, out, _ := as(t, "/usr/bin/foresail", "hpa", "--help")
	assert.NotContains(t, out, "kubectl foresail")
}

func TestShellsAreGivenAScript(t *testing.T) {
	scripts := map[string]bool{}
	for _, shell := range shells {
		code, out, stderr := foresail(t, "", "completion", shell)
		assert.Equal(t, cli.ExitDone, code, stderr)
		assert.Contains(t, out, "__complete", shell)
		assert.False(t, scripts[out], shell)
		scripts[out] = true
	}
	code, _, stderr := foresail(t, "", "completion", "tcsh")
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, `["tcsh"]: must be one of bash, zsh, fish, powershell`)
}

func kind(name string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: name, APIVersion: v1alpha1.GroupVersion.String()}
}

// kubeconfig returns a file whose current context leads nowhere, and whose context "here" leads to
// a cluster that has a PredictedMetric in the namespace shop and a WorkerPool.
func kubeconfig(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		version := metav1.GroupVersionForDiscovery{GroupVersion: "foresail.dev/v1alpha1", Version: "v1alpha1"}
		group := metav1.APIGroup{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: "foresail.dev",
			Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		}
		switch r.URL.Path {
		case "/api":
			answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}}
		case "/apis":
			answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
				Groups: []metav1.APIGroup{group}}
		case "/apis/foresail.dev":
			answer = group
		case "/apis/foresail.dev/v1alpha1":
			answer = metav1.APIResourceList{
				TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
				GroupVersion: "foresail.dev/v1alpha1",
				APIResources: []metav1.APIResource{
					{Name: "predictedmetrics", Kind: "PredictedMetric", Namespaced: true},
					{Name: "workerpools", Kind: "WorkerPool"},
				},
			}
		case "/apis/foresail.dev/v1alpha1/namespaces/shop/predictedmetrics":
			answer = v1alpha1.PredictedMetricList{TypeMeta: kind("PredictedMetricList"),
				Items: []v1alpha1.PredictedMetric{{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: "shop"}}}}
		case "/apis/foresail.dev/v1alpha1/workerpools":
			answer = v1alpha1.WorkerPoolList{TypeMeta: kind("WorkerPoolList"),
				Items: []v1alpha1.WorkerPool{{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}}}
		default:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	config := api.NewConfig()
	config.Clusters["here"] = &api.Cluster{Server: server.URL}
	config.Clusters["gone"] = &api.Cluster{Server: "http://127.0.0.1:1"}
	config.Contexts["here"] = &api.Context{Cluster: "here", Namespace: "shop"}
	config.Contexts["gone"] = &api.Context{Cluster: "gone"}
	config.CurrentContext = "gone"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// TestKubectlCompletesThePlugin runs what kubectl runs: kubectl_complete-foresail with the words
// typed so far.
func TestKubectlCompletesThePlugin(t *testing.T) {
	config := kubeconfig(t)
	for _, c := range []struct {
		words string
		want  []string
	}{
		{"roll", []string{"rollout"}},
		{"explain ", []string{"pod", "predictedmetric", "workerpool"}},
		{"explain predictedmetric --context here ", []string{"checkout"}},
		{"hpa --context here che", []string{"checkout"}},
		{"explain wp --context here ", []string{"workers"}},
		{"rollout pause --context here ", []string{"workers"}},
		{"rollout pause --context here workers ", nil},
		{"explain wp ", nil}, // of a cluster that does not answer
		{"explain wp workers --output ", []string{"table", "json"}},
		{"completion ", shells},
	} {
		t.Setenv("KUBECONFIG", config)
		code, out, stderr := as(t, append([]string{"kubectl_complete-foresail"}, strings.Split(c.words, " ")...)...)
		require.Equal(t, cli.ExitDone, code, stderr)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var names []string
		for _, line := range lines[:len(lines)-1] {
			name, _, _ := strings.Cut(line, "\t")
			names = append(names, name)
		}
		assert.ElementsMatch(t, c.want, names, c.words)
		assert.Equal(t, ":4", lines[len(lines)-1], "no files: %s", c.words)
	}
}

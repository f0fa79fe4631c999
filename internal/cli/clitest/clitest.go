// Package clitest has what tests of commands share.
package clitest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/test/env/controlplane"
)

// Run executes a command line of root and returns its exit code, stdout and stderr.
func Run(t *testing.T, root *cobra.Command, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = cli.Execute(t.Context(), root, args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// File writes a file that lasts as long as the test, and returns its path.
func File(t *testing.T, name, content string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// Eventually waits until something is true, for a minute at most.
func Eventually(t *testing.T, what func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !what(); time.Sleep(100 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "not within a minute")
	}
}

// Status is what a path answers with, 0 if nothing answers.
func Status(t *testing.T, port int, path string) int {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// WithDefinitions adds Foresail's kinds, from the folder of the manifests, and returns a client
// that knows them.
func WithDefinitions(t *testing.T, cluster *controlplane.Cluster, manifests string) client.Client {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(manifests, "crds/foresail.dev_*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = cluster.Apply(t.Context(), content)
		require.NoError(t, err)
	}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	objects, err := client.New(cluster.RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	return objects
}

// NewPool creates a WorkerPool with a journal and two decisions.
func NewPool(t *testing.T, objects client.Client) *v1alpha1.WorkerPool {
	t.Helper()
	pool := &v1alpha1.WorkerPool{
		ObjectMeta: metav1.ObjectMeta{Name: "workers"},
		Spec: v1alpha1.WorkerPoolSpec{Min: 1, Max: 10,
			Provider: v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{}}},
	}
	require.NoError(t, objects.Create(t.Context(), pool))
	journal, err := state.Encode(state.Record{Version: 1, Owner: "host_1"})
	require.NoError(t, err)
	decided := func(ago time.Duration, message string) v1alpha1.PoolDecision {
		return v1alpha1.PoolDecision{Time: metav1.NewTime(time.Now().Add(-ago)), Step: "ScaleUp", Reason: "PodsPending",
			Message: message, Workers: 1, Desired: 2}
	}
	pool.Status.Journal = &runtime.RawExtension{Raw: journal}
	pool.Status.Decisions = []v1alpha1.PoolDecision{decided(time.Minute, "because three pods are pending"),
		decided(time.Hour, "nothing to do")}
	require.NoError(t, objects.Status().Update(t.Context(), pool))
	return pool
}

var printed = regexp.MustCompile(`^Open (http://127\.0\.0\.1:\d+/\?token=\w+)(?:#\w+)?\n`)

// Browse runs foresail dashboard and returns a browser that has opened the URL that it printed, the
// address that it serves at, and all that it printed.
func Browse(t *testing.T, root *cobra.Command, args ...string) (*http.Client, string, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	var stderr strings.Builder
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Execute(ctx, root, append([]string{"dashboard"}, args...), nil, writer, &stderr)
		_ = writer.Close()
	}()
	lines, said := bufio.NewReader(reader), ""
	for !strings.HasSuffix(said, "Ctrl-C ends it.\n") {
		line, err := lines.ReadString('\n')
		if err != nil {
			cancel()
			<-ended
			require.NoError(t, err, stderr.String())
		}
		said += line
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	match := printed.FindStringSubmatch(said)
	require.NotNil(t, match, said)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	t.Cleanup(func() {
		browser.CloseIdleConnections()
		cancel()
		assert.Equal(t, cli.ExitDone, <-ended, stderr.String())
	})
	code, body := Open(t, browser, match[1])
	require.Equal(t, http.StatusOK, code, body)
	assert.Contains(t, body, "<title>Foresail</title>")
	base, _, _ := strings.Cut(match[1], "/?")
	return browser, base, said
}

// Open returns the status and the body of a page.
func Open(t *testing.T, browser *http.Client, address string) (int, string) {
	t.Helper()
	response, err := browser.Get(address)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// ForesailPod returns a running pod of Foresail with named ports from 8080 on.
func ForesailPod(name string, ports ...string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "foresail-system", Name: name},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.Spec.Containers = []corev1.Container{{Name: "foresail"}}
	for i, port := range ports {
		pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports,
			corev1.ContainerPort{Name: port, ContainerPort: int32(8080 + i)})
	}
	return pod
}

// Rows are the lines from one that begins with a heading to the next empty one.
func Rows(lines []string, heading string) []string {
	for i, line := range lines {
		if !strings.HasPrefix(line, heading) {
			continue
		}
		for j := i; ; j++ {
			if j == len(lines) || lines[j] == "" {
				return lines[i:j]
			}
		}
	}
	return nil
}

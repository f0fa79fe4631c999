//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/docpages"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/kubectl"
	"github.com/foresail/foresail/test/env/ports"
)

const page = "docs/local.md"

// TestPageRuns runs the commands of a page as a reader who copies them into a shell does. Only the
// control plane is this test's, as in a shell of its own, and so are programs, ports and files,
// because tests share the machine and the repository.
func TestPageRuns(t *testing.T) {
	root, err := controlplane.Root()
	require.NoError(t, err)
	_, err = foresail.Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	client, err := kubectl.Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	script := commands(t, root)

	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	output := &upOutput{look: func(kubeconfig string) {
		defer interrupt()
		said, err := shell(ctx, t, root, script,
			"KUBECONFIG="+kubeconfig,
			"PATH="+strings.Join([]string{filepath.Join(root, ".cache", "bin"), filepath.Dir(client),
				os.Getenv("PATH")}, string(os.PathListSeparator)))
		assert.NoError(t, err, said)
		assert.Contains(t, said, `"metricName":"predicted_load_total"`)
		assert.Contains(t, said, "PredictedMetric shop/checkout")
		assert.Contains(t, said, "Open http://127.0.0.1:")
		assert.Contains(t, said, `deployment "batch" successfully rolled out`)
		assert.Contains(t, said, "WorkerPool workers")
		assert.Contains(t, said, "WorkerPool moto")
	}}
	cmd := newCommand()
	cmd.SetArgs([]string{"up", "--ready-delay=2s"})
	cmd.SetOut(output)
	require.NoError(t, cmd.ExecuteContext(ctx))
}

// commands are those of the page after the control plane is up.
func commands(t *testing.T, root string) string {
	t.Helper()
	for _, p := range docpages.Pages(t, root) {
		if p.Path != page {
			continue
		}
		var blocks []string
		for _, block := range p.Blocks() {
			blocks = append(blocks, block.Text)
		}
		require.Greater(t, len(blocks), 1)
		require.Contains(t, blocks[0], "controlplane up")
		return replaced(t, strings.Join(blocks[1:], ""))
	}
	require.Fail(t, "no page "+page)
	return ""
}

// replaced has a script build nothing, and write and listen where no other test does.
func replaced(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	port := func() string {
		free, err := ports.Take()
		require.NoError(t, err)
		return strconv.Itoa(free)
	}
	pairs := []string{
		"CGO_ENABLED=0 go build ", "true ",
		`export PATH="$PWD/bin:$PATH"`, "true",
		"--apiservice-service foresail:6443", fmt.Sprintf("--apiservice-service foresail:%s --secure-port %[1]s",
			port()),
		"out/", dir + "/",
		"8080", port(), "8081", port(), "8082", port(), "9090", port(), "5000", port(),
	}
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, script, pairs[i])
	}
	return strings.NewReplacer(pairs...).Replace(script)
}

// shell runs a script, ends what it left in the background, and returns what it said.
func shell(ctx context.Context, t *testing.T, root, script string, env ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "said")
	said, err := os.Create(file) // a pipe would stay open in the background
	require.NoError(t, err)
	defer func() { _ = said.Close() }()
	shell := exec.CommandContext(ctx, "sh", "-eu", "-c", script)
	shell.Dir, shell.Env = root, append(os.Environ(), env...)
	shell.Stdout, shell.Stderr = said, said
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	failure := shell.Run()
	if shell.Process != nil {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(content), failure
}

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// newTestBuilder returns a builder on a copy of the components' module file, so that a test may change it.
func newTestBuilder(t *testing.T) builder {
	t.Helper()
	root, err := Root()
	require.NoError(t, err)
	b := builder{Programs: programs(), module: t.TempDir(), progress: &bytes.Buffer{}, out: t.TempDir()}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(root, componentsDir, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(b.module, name), data, 0o644))
	}
	return b
}

func TestKeyFollowsTheModuleFiles(t *testing.T) {
	b := newTestBuilder(t)
	before, err := b.key(t.Context())
	require.NoError(t, err)
	again, err := b.key(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, again)

	sum := filepath.Join(b.module, "go.sum")
	require.NoError(t, os.WriteFile(sum, []byte("example.org/m v1.0.0 h1:x\n"), 0o644))
	after, err := b.key(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, before, after)
}

func TestKeyFollowsThePrograms(t *testing.T) {
	b := newTestBuilder(t)
	before, err := b.key(t.Context())
	require.NoError(t, err)
	for name, change := range map[string]func(*builder){
		"tags":     func(b *builder) { b.Tags = "netgo" },
		"programs": func(b *builder) { b.List = b.List[1:] },
		"assets":   func(b *builder) { b.Assets = Assets{} },
		"flags":    func(b *builder) { b.Stamp = func(string) (string, error) { return "", nil } },
	} {
		changed := b
		change(&changed)
		after, err := changed.key(t.Context())
		require.NoError(t, err)
		require.NotEqual(t, before, after, name)
	}
}

func TestDefaultNameIsTheOneOfTheGoCommand(t *testing.T) {
	for pkg, want := range map[string]string{
		"go.etcd.io/etcd/server/v3":              "server",
		"k8s.io/kubernetes/cmd/kube-apiserver":   "kube-apiserver",
		"example.org/v1":                         "v1",
		"example.org/v2/cmd":                     "cmd",
		"github.com/kedacore/keda/v2/cmd/v2tool": "v2tool",
	} {
		require.Equal(t, want, Program{Package: pkg}.defaultName(), pkg)
	}
}

func TestVersionComesFromTheModuleFile(t *testing.T) {
	b := newTestBuilder(t)
	require.NoError(t, os.WriteFile(filepath.Join(b.module, "go.mod"),
		[]byte("module m\n\nrequire k8s.io/kubernetes v1.99.7\n"), 0o644))
	version, err := b.releaseVersion(t.Context())
	require.NoError(t, err)
	require.Equal(t, "v1.99.7", version)

	flags, err := b.linkerFlags(version)
	require.NoError(t, err)
	require.Contains(t, flags, "gitVersion=v1.99.7 ")
	require.Contains(t, flags, "gitMajor=1 ")
	require.Contains(t, flags, "gitMinor=99")

	require.NoError(t, os.WriteFile(filepath.Join(b.module, "go.mod"), []byte("module m\n"), 0o644))
	_, err = b.releaseVersion(t.Context())
	require.ErrorContains(t, err, "requires no k8s.io/kubernetes")
}

func TestBuildFailureCarriesTheCompilersWords(t *testing.T) {
	b := newTestBuilder(t)
	require.NoError(t, os.WriteFile(filepath.Join(b.module, "go.mod"), []byte("module m\n"), 0o644))
	err := b.buildPrograms(t.Context(), []Program{{"kwok", "sigs.k8s.io/kwok/cmd/kwok"}}, "-s")
	require.ErrorContains(t, err, "module providing package sigs.k8s.io/kwok/cmd/kwok")
	require.NoFileExists(t, filepath.Join(b.out, string(Kwok)))
	left, err := os.ReadDir(b.out)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestBuildWaitsForAnotherProcess(t *testing.T) {
	b := newTestBuilder(t)
	lockPath := filepath.Join(t.TempDir(), "lock")
	other, err := os.Create(lockPath)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, tryLock(other))

	progress := newSignalWriter("waiting for another process")
	b.progress = progress
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.buildLocked(ctx, lockPath) }()
	<-progress.seen
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestCompilerOutput(t *testing.T) {
	report := newReporter(&bytes.Buffer{}, "building")
	output := &compilerOutput{report: report}
	for _, piece := range []string{"go: downloading a v1", ".0.0\ngo: downloading b v1.0.0\n"} {
		_, err := output.Write([]byte(piece))
		require.NoError(t, err)
	}
	require.Equal(t, "2 modules downloaded", report.detail)
	_, err := output.Write([]byte("internal/abi\nexample.org/x\n# example.org/x\n./x.go:1:1: undefined: y\ncut"))
	require.NoError(t, err)
	require.Equal(t, "2 packages compiled", report.detail)
	require.Equal(t, "# example.org/x\n./x.go:1:1: undefined: y\ncut", output.tail())

	for range 3 * keptLines {
		_, err := output.Write([]byte("an error\n"))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, strings.Count(output.tail(), "\n"), keptLines)
}

func TestRoot(t *testing.T) {
	t.Setenv(RootEnv, t.TempDir())
	_, err := Root()
	require.ErrorContains(t, err, RootEnv)
	require.ErrorContains(t, err, componentsDir)

	t.Setenv(RootEnv, "")
	root, err := Root()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "test", "env", "controlplane", "build.go"))
	t.Setenv(RootEnv, root)
	given, err := Root()
	require.NoError(t, err)
	require.Equal(t, root, given)
}

// signalWriter closes seen when the text that it waits for was written.
type signalWriter struct {
	text string
	all  bytes.Buffer
	seen chan struct{}
}

func newSignalWriter(text string) *signalWriter {
	return &signalWriter{text: text, seen: make(chan struct{})}
}

func (w *signalWriter) Write(p []byte) (int, error) {
	before := strings.Contains(w.all.String(), w.text)
	n, err := w.all.Write(p)
	if !before && strings.Contains(w.all.String(), w.text) {
		close(w.seen)
	}
	return n, err
}

func TestMakeOnceFillsAFolderOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache", "key")
	var fills atomic.Int32
	fill := func(context.Context, func(string)) error {
		fills.Add(1)
		return os.WriteFile(filepath.Join(dir, "content"), []byte("whole"), 0o644)
	}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() { assert.NoError(t, MakeOnce(t.Context(), "thing", dir, nil, fill)) })
	}
	callers.Wait()
	require.EqualValues(t, 1, fills.Load())
	require.FileExists(t, filepath.Join(dir, "content"))
}

func TestMakeOnceFillsAgainWhatWasLeftHalf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "key")
	var progress strings.Builder
	errFull := errors.New("the disk is full")
	err := MakeOnce(t.Context(), "thing", dir, &progress, func(_ context.Context, note func(string)) error {
		note("downloading")
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o644), errFull)
	})
	require.ErrorIs(t, err, errFull)
	require.Contains(t, progress.String(), "thing: making "+dir)
	require.Contains(t, progress.String(), "downloading")
	require.NoError(t, MakeOnce(t.Context(), "thing", dir, nil, func(context.Context, func(string)) error {
		return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o644)
	}))
	require.NoFileExists(t, filepath.Join(dir, "half"))
	require.FileExists(t, filepath.Join(dir, "whole"))
}

// Programs that tests run are built with the versions that the repository itself requires, or newer
// ones: a version of its own is compiled once more, which takes minutes for those of Kubernetes.
func TestProgramsShareTheVersionsOfTheRepository(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	ours := requirements(t, root)
	for _, module := range []string{
		"test/env/controlplane/components", "test/env/monitoring/components", "test/suite/keda/components",
		"test/bench/karpenter/components",
		"test/env/kubectl/components", "test/suite/helm/components", "test/suite/helm/previous",
		"test/suite/otel/collector", "internal/tools/release",
	} {
		theirs := requirements(t, filepath.Join(root, module))
		shared := 0
		for path, version := range theirs {
			want, both := ours[path]
			if !both {
				continue
			}
			shared++
			assert.False(t, version.LessThan(want),
				"%s requires %s v%s, the repository v%s: go get %s@v%s there, and go mod tidy", module, path, version, want, path, want)
		}
		assert.Greater(t, shared, 10, module)
	}
}

// requirements are the versions that a module requires, or has instead.
func requirements(t *testing.T, dir string) map[string]*utilversion.Version {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	command.Dir = dir
	out, err := command.Output()
	require.NoError(t, err, dir)
	type module struct{ Path, Version string }
	var file struct {
		Require []module
		Replace []struct{ Old, New module }
	}
	require.NoError(t, json.Unmarshal(out, &file))
	for _, r := range file.Replace {
		file.Require = append(file.Require, module{r.Old.Path, r.New.Version})
	}
	versions := map[string]*utilversion.Version{}
	for _, m := range file.Require {
		version, err := utilversion.ParseSemantic(m.Version)
		require.NoError(t, err, "%s: %s", dir, m.Path)
		versions[m.Path] = version
	}
	return versions
}

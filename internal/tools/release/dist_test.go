package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

func TestInstallManifestHasAnImageThatIsPublished(t *testing.T) {
	text, err := installManifest(root, "v1.2.3", "")
	require.NoError(t, err)
	assert.Equal(t, 1, bytes.Count(text, []byte("image: ghcr.io/foresail/foresail:v1.2.3\n")))
	assert.NotContains(t, string(text), "foresail:dev")
	for _, kind := range []string{"Namespace", "CustomResourceDefinition", "Deployment", "ClusterRole"} {
		assert.Contains(t, string(text), "\nkind: "+kind+"\n")
	}
	again, err := installManifest(root, "v1.2.3", "")
	require.NoError(t, err)
	assert.Equal(t, text, again)
}

// TestDigestIsThatOfTheSameVersion has an image of another version lie there.
func TestDigestIsThatOfTheSameVersion(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "image")
	o := distOptions{root: root, version: "v1.2.3", image: folder}
	digest, err := o.digest()
	require.NoError(t, err)
	assert.Empty(t, digest, "there is no image")
	index, err := random.Index(10, 1, 1)
	require.NoError(t, err)
	path, err := layout.Write(folder, empty.Index)
	require.NoError(t, err)
	require.NoError(t, path.AppendIndex(index,
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "v1.2.3"})))
	digest, err = o.digest()
	require.NoError(t, err)
	assert.Regexp(t, "^sha256:[0-9a-f]{64}$", digest)
	text, err := installManifest(root, o.version, digest)
	require.NoError(t, err)
	assert.Contains(t, string(text), "image: ghcr.io/foresail/foresail:v1.2.3@"+digest+"\n")
	o.version = "v1.2.4"
	digest, err = o.digest()
	require.NoError(t, err)
	assert.Empty(t, digest)
}

func TestUnusableArgumentsAreRefused(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	assert.ErrorContains(t, run([]string{"--version", "v1"}, io.Discard), "is missing")
	assert.ErrorContains(t, run([]string{"--version", "v1", "--root", "a", "--out", "b"}, io.Discard),
		"SOURCE_DATE_EPOCH")
	assert.ErrorIs(t, run([]string{"--help"}, io.Discard), flag.ErrHelp)
}

// dist makes a release of binaries that are not worth one.
func dist(t *testing.T) string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1793534400")
	source, binaries, out := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "dist")
	require.NoError(t, os.WriteFile(filepath.Join(source, "go.mod"),
		[]byte("module example.com/foresail\n\ngo 1.26.0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(source, "main.go"), []byte("package main\n\nfunc main() {}\n"),
		0o600))
	for _, platform := range []string{"linux/amd64/foresail", "linux/arm64/foresail"} {
		parts := strings.Split(platform, "/")
		command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o",
			filepath.Join(binaries, platform), ".")
		command.Dir, command.Env = source, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+parts[0], "GOARCH="+parts[1])
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
	}
	require.NoError(t, os.MkdirAll(out, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(out, "old"), nil, 0o600))
	require.NoError(t, run([]string{"--root", root, "--version", "v1.2.3", "--out", out,
		filepath.Join(binaries, "linux/amd64/foresail"), filepath.Join(binaries, "linux/arm64/foresail")}, io.Discard))
	return out
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

// untar returns the files of an archive by name.
func untar(t *testing.T, path string) fstest.MapFS {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	require.NoError(t, err)
	files, reader := fstest.MapFS{}, tar.NewReader(compressed)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(reader)
		require.NoError(t, err)
		files[header.Name] = &fstest.MapFile{Mode: header.FileInfo().Mode(), Data: content}
	}
}

// krewPlugin is the manifest of a plugin as krew reads it.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string              `json:"uri"`
			SHA256 string              `json:"sha256"`
			Bin    string              `json:"bin"`
			Files  []map[string]string `json:"files"`
		} `json:"platforms"`
	} `json:"spec"`
}

func TestReleaseHasAllThatItPublishes(t *testing.T) {
	out := dist(t)
	assert.Equal(t, []string{
		"SHA256SUMS", "foresail-1.2.3.tgz", "foresail.yaml",
		"foresail_v1.2.3_linux_amd64.spdx.json", "foresail_v1.2.3_linux_amd64.tar.gz",
		"foresail_v1.2.3_linux_arm64.spdx.json", "foresail_v1.2.3_linux_arm64.tar.gz", "install.yaml",
	}, names(t, out))
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	require.NoError(t, err)
	assert.Equal(t, len(names(t, out))-1, bytes.Count(sums, []byte("\n")))
	again := dist(t)
	for _, name := range names(t, out) {
		first, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		second, err := os.ReadFile(filepath.Join(again, name))
		require.NoError(t, err)
		assert.Equal(t, sum(first), sum(second), name)
		if name != "SHA256SUMS" {
			assert.Contains(t, string(sums), sum(first)+"  "+name+"\n")
		}
	}
}

// TestKrewFindsThePlugin follows the manifest as krew does.
func TestKrewFindsThePlugin(t *testing.T) {
	out := dist(t)
	text, err := os.ReadFile(filepath.Join(out, "foresail.yaml"))
	require.NoError(t, err)
	var plugin krewPlugin
	require.NoError(t, yaml.UnmarshalStrict(text, &plugin))
	assert.Equal(t, "foresail", plugin.Metadata["name"], "as the file")
	assert.Equal(t, "v1.2.3", plugin.Spec.Version)
	assert.LessOrEqual(t, len(plugin.Spec.ShortDescription), 50)
	require.Len(t, plugin.Spec.Platforms, 2)
	for _, p := range plugin.Spec.Platforms {
		assert.Equal(t, "linux", p.Selector.MatchLabels["os"])
		name, ok := strings.CutPrefix(p.URI, "https://github.com/foresail/foresail/releases/download/v1.2.3/")
		require.True(t, ok, p.URI)
		content, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		assert.Equal(t, sum(content), p.SHA256)
		files := untar(t, filepath.Join(out, name))
		for _, f := range p.Files {
			assert.Contains(t, files, f["from"])
		}
		assert.Equal(t, os.FileMode(0o755), files[p.Bin].Mode)
		assert.Contains(t, string(files["LICENSE"].Data), "Apache License")
	}
}

func TestPackagedChartIsThatOfTheRelease(t *testing.T) {
	chart, err := loader.LoadFile(filepath.Join(dist(t), "foresail-1.2.3.tgz"))
	require.NoError(t, err)
	assert.Equal(t, "1.2.3", chart.Metadata.Version)
	assert.Equal(t, "1.2.3", chart.Metadata.AppVersion)
	assert.Equal(t, "false", chart.Metadata.Annotations["artifacthub.io/prerelease"])
	assert.Equal(t, "- {name: foresail, image: \"ghcr.io/foresail/foresail:v1.2.3\"}\n",
		chart.Metadata.Annotations["artifacthub.io/images"])
	assert.NotEmpty(t, chart.Schema)
	var names []string
	for _, f := range append(chart.Files, chart.Templates...) {
		names = append(names, f.Name)
	}
	for _, name := range []string{
		"README.md", "templates/objects.yaml", "files/base/deployment.yaml", "files/crds/foresail.dev_workerpools.yaml",
		"files/examples/extender-certificates/configuration/kubescheduler.yaml",
	} {
		assert.Contains(t, names, name)
	}
	assert.NotContains(t, names, "files/examples/predictedmetric.yaml", "the chart does not read it")
}

func TestOneBinaryForEachPlatform(t *testing.T) {
	own, err := os.Executable()
	require.NoError(t, err)
	_, err = archives([]string{own, own}, root+"/LICENSE", "v1.2.3", time.Unix(1, 0))
	assert.ErrorContains(t, err, "are both for "+runtime.GOOS+"/"+runtime.GOARCH)
	_, err = archives([]string{"dist_test.go"}, root+"/LICENSE", "v1.2.3", time.Unix(1, 0))
	assert.ErrorContains(t, err, "dist_test.go")
}

func TestZipHasTheModes(t *testing.T) {
	content, err := zipFile(fstest.MapFS{"LICENSE": {Mode: 0o644, Data: []byte("a")},
		"foresail.exe": {Mode: 0o755, Data: []byte("b")}})
	require.NoError(t, err)
	reader, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	require.Len(t, reader.File, 2)
	assert.Equal(t, "foresail.exe", reader.File[1].Name)
	assert.Equal(t, os.FileMode(0o755), reader.File[1].Mode())
}

func TestVersionsOfCharts(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3-rc.1", "216c4e9": "0.0.0-g216c4e9",
		"v1.2.3-5-g216c4e9-dirty": "1.2.3-5-g216c4e9-dirty", "v01": "0.0.0-g01", "a/b": "0.0.0-ga-b",
	} {
		assert.Equal(t, want, chartVersion(version), version)
	}
}

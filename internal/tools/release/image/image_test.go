package main

import (
	"archive/tar"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quiet is the log of a registry that nobody reads.
var quiet = log.New(io.Discard, "", 0)

var options = Options{Version: "v1.2.3", Revision: "0123456789abcdef",
	Created: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}

var architectures = []string{"amd64", "arm64"}

// standIn is as small as a program can be: what is tested is what is around it.
const standIn = `package main

func main() { println("foresail v1.2.3") }
`

// compile builds a program for each architecture, as the Makefile builds foresail.
func compile(t *testing.T, source, pkg string) []string {
	t.Helper()
	var binaries []string
	for _, architecture := range architectures {
		binary := filepath.Join(t.TempDir(), "foresail-"+architecture)
		command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags",
			"-s -w -buildid= -X github.com/foresail/foresail/internal/cli.release="+options.Version, "-o", binary, pkg)
		command.Dir = source
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
		binaries = append(binaries, binary)
	}
	return binaries
}

func buildStandIn(t *testing.T) []string {
	t.Helper()
	source := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(source, "go.mod"),
		[]byte("module example.com/foresail\n\ngo 1.26.0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(source, "main.go"), []byte(standIn), 0o600))
	return compile(t, source, ".")
}

func assemble(t *testing.T, binaries ...string) Release {
	t.Helper()
	release, err := Assemble(options, binaries...)
	require.NoError(t, err)
	return release
}

func digest(t *testing.T, thing interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	h, err := thing.Digest()
	require.NoError(t, err)
	return h.String()
}

func TestTwoBuildsHaveOneDigest(t *testing.T) {
	first, second := assemble(t, buildStandIn(t)...), assemble(t, buildStandIn(t)...)
	assert.Equal(t, digest(t, first), digest(t, second))
	for i := range first.SBOMs {
		assert.Equal(t, digest(t, first.SBOMs[i]), digest(t, second.SBOMs[i]))
	}
	other, err := Assemble(Options{Version: "v1.2.4", Revision: options.Revision, Created: options.Created},
		buildStandIn(t)...)
	require.NoError(t, err)
	assert.NotEqual(t, digest(t, first), digest(t, other))
}

func TestLayoutIsValid(t *testing.T) {
	release := assemble(t, buildStandIn(t)...)
	folder := filepath.Join(t.TempDir(), "image")
	for range 2 { // the second replaces the first
		require.NoError(t, release.Write(folder, options.Version))
	}
	path, err := layout.FromPath(folder)
	require.NoError(t, err)
	index, err := path.ImageIndex()
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1+len(architectures))
	assert.Equal(t, digest(t, release), manifest.Manifests[0].Digest.String())
	assert.Equal(t, options.Version, manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	for _, document := range manifest.Manifests[1:] {
		assert.Equal(t, "application/spdx+json", document.ArtifactType)
	}
}

// TestPulledImageRuns pushes to a registry in this process, and takes out of what is pulled again
// what a node would run.
func TestPulledImageRuns(t *testing.T) {
	checkPulled(t, assemble(t, buildStandIn(t)...))
}

func checkPulled(t *testing.T, release Release, arguments ...string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(quiet)))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/foresail/foresail:" + options.Version
	pushed, err := release.Push(t.Context(), reference)
	require.NoError(t, err)
	ref, err := name.ParseReference(reference)
	require.NoError(t, err)
	index, err := remote.Index(ref)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	assert.Equal(t, pushed.DigestStr(), digest(t, index))
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	assert.Equal(t, labels(options), manifest.Annotations)
	var found []string
	for _, described := range manifest.Manifests {
		found = append(found, described.Platform.Architecture)
		image, err := index.Image(described.Digest)
		require.NoError(t, err)
		settings, err := image.ConfigFile()
		require.NoError(t, err)
		assert.Equal(t, described.Platform.Architecture, settings.Architecture)
		assert.Equal(t, config(options), settings.Config)
		assert.Equal(t, options.Created, settings.Created.UTC())
		files := extract(t, image)
		assert.Contains(t, string(files["etc/passwd"].Data), ":65532:65532:")
		assert.True(t, x509.NewCertPool().AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"].Data))
		if described.Platform.Architecture == runtime.GOARCH {
			binary := filepath.Join(t.TempDir(), "foresail")
			require.NoError(t, os.WriteFile(binary, files["foresail"].Data, files["foresail"].Mode))
			output, err := exec.CommandContext(t.Context(), binary, arguments...).CombinedOutput()
			require.NoError(t, err, string(output))
			assert.Contains(t, string(output), "foresail "+options.Version)
		}
		referrers, err := remote.Referrers(ref.Context().Digest(described.Digest.String()))
		require.NoError(t, err)
		documents, err := referrers.IndexManifest()
		require.NoError(t, err)
		require.Len(t, documents.Manifests, 1)
		attached, err := remote.Image(ref.Context().Digest(documents.Manifests[0].Digest.String()))
		require.NoError(t, err)
		what, err := attached.Manifest()
		require.NoError(t, err)
		assert.Equal(t, "application/spdx+json", documents.Manifests[0].ArtifactType)
		assert.Equal(t, described.Digest, what.Subject.Digest)
		require.Len(t, what.Layers, 1)
		assert.EqualValues(t, "application/spdx+json", what.Layers[0].MediaType)
	}
	assert.Equal(t, architectures, found)
}

// extract returns the files of an image, of which all are of root and of the time of the commit.
func extract(t *testing.T, image v1.Image) fstest.MapFS {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	files := fstest.MapFS{}
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		assert.Zero(t, header.Uid+header.Gid, header.Name)
		assert.Equal(t, options.Created, header.ModTime.UTC(), header.Name)
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		files[header.Name] = &fstest.MapFile{Mode: header.FileInfo().Mode(), Data: text}
	}
}

func TestUnusableArgumentsAreRefused(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	assert.ErrorContains(t, run(t.Context(), []string{"--version", "v1"}, io.Discard), "--out is missing")
	assert.ErrorContains(t, run(t.Context(), []string{"--version", "v1", "--out", "a"}, io.Discard),
		"SOURCE_DATE_EPOCH")
}

func TestUnusableBinariesAreRefused(t *testing.T) {
	binaries := buildStandIn(t)
	_, err := Assemble(options, binaries[0], binaries[0])
	assert.ErrorContains(t, err, "are both for linux/amd64")
	_, err = Assemble(options)
	assert.ErrorContains(t, err, "needs a binary")
	_, err = Assemble(Options{}, binaries...)
	assert.ErrorContains(t, err, "needs a version")
	_, err = Assemble(options, "image_test.go")
	assert.ErrorContains(t, err, "image_test.go")
	_, err = platformOf(&debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "GOOS", Value: "windows"},
		{Key: "CGO_ENABLED", Value: "0"}}})
	assert.ErrorContains(t, err, "GOOS=windows")
	_, err = platformOf(&debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"},
		{Key: "CGO_ENABLED", Value: "1"}}})
	assert.ErrorContains(t, err, "an empty image has no libraries")
}

// TestDockerfileSaysTheSame compares what the two ways to make an image set.
func TestDockerfileSaysTheSame(t *testing.T) {
	text, err := os.ReadFile("../../../../Dockerfile")
	require.NoError(t, err)
	_, final, ok := strings.Cut(string(text), "FROM gcr.io")
	require.True(t, ok)
	c := config(options)
	var ports []string
	for port := range c.ExposedPorts {
		ports = append(ports, strings.TrimSuffix(port, "/tcp"))
	}
	for _, line := range []string{
		"USER " + c.User, fmt.Sprintf("ENTRYPOINT [%q]", c.Entrypoint[0]), fmt.Sprintf("CMD [%q]", c.Cmd[0]),
		"COPY --from=build /foresail /foresail",
	} {
		assert.Contains(t, strings.Split(final, "\n"), line)
	}
	for key, value := range c.Labels {
		switch {
		case strings.HasSuffix(key, ".version"):
			value = "$VERSION"
		case strings.HasSuffix(key, ".revision"), strings.HasSuffix(key, ".created"):
			continue // a Dockerfile knows neither the commit nor its time
		}
		assert.Contains(t, final, fmt.Sprintf("%s=%q", key, value))
	}
	for line := range strings.Lines(final) {
		if exposed, ok := strings.CutPrefix(line, "EXPOSE "); ok {
			assert.ElementsMatch(t, ports, strings.Fields(exposed))
			ports = nil
		}
	}
	assert.Empty(t, ports, "the Dockerfile exposes no ports")
}

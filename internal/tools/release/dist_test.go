package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	require.NoError(t, path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "v1.2.3"})))
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
	for _, c := range []struct{ args, message string }{
		{"", "must be "},
		{"publish", `unknown command ["publish"]`},
		{"image --version v1", "--out is missing"},
		{"image --version v1 --out a", "SOURCE_DATE_EPOCH"},
		{"dist --version v1", "is missing"},
	} {
		assert.ErrorContains(t, run(t.Context(), strings.Fields(c.args), io.Discard), c.message, c.args)
	}
	var help bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--help"}, &help))
	assert.Contains(t, help.String(), "Usage:")
}

func TestDistReplacesItsFolder(t *testing.T) {
	out := filepath.Join(t.TempDir(), "dist")
	require.NoError(t, os.MkdirAll(out, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(out, "old"), nil, 0o600))
	require.NoError(t, run(t.Context(), []string{"dist", "--root", root, "--version", "v1.2.3", "--out", out}, io.Discard))
	assert.NoFileExists(t, filepath.Join(out, "old"))
	assert.FileExists(t, filepath.Join(out, "install.yaml"))
}

func TestVersionsOfCharts(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3-rc.1", "216c4e9": "0.0.0-g216c4e9", "v1.2.3-5-g216c4e9-dirty": "1.2.3-5-g216c4e9-dirty", "v01": "0.0.0-g01", "a/b": "0.0.0-ga-b",
	} {
		assert.Equal(t, want, chartVersion(version), version)
	}
}

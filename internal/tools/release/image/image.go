// Command image assembles a container image from compiled binaries, without a daemon: an empty
// base, authorities to trust, a user that is not root, and the binary. The same binaries and times
// give the same digest. `make image` runs it.
package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/foresail/foresail/internal/tools/release/build"
	"github.com/foresail/foresail/internal/tools/release/sbom"
)

// Options describe an image in addition to its binaries.
type Options struct {
	// Version is that of the release, such as v1.2.3.
	Version string
	// Revision is the commit that the binaries were built from.
	Revision string
	// Created is the time of all files and of the image: that of the commit, so that two builds are one.
	Created time.Time
}

// The user of the image has no name in any cluster; it is that of the manifests.
const (
	uid = 65532
	gid = 65532
)

// config is what the Dockerfile says too; a test compares the two.
func config(o Options) v1.Config {
	return v1.Config{
		User:       fmt.Sprintf("%d:%d", uid, gid),
		Entrypoint: []string{"/foresail"},
		Cmd:        []string{"run"},
		WorkingDir: "/",
		Env:        []string{"PATH=/", "SSL_CERT_FILE=" + certificates},
		ExposedPorts: map[string]struct{}{
			"6443/tcp": {}, "8080/tcp": {}, "8443/tcp": {}, "9201/tcp": {}, "9443/tcp": {}, "9600/tcp": {},
		},
		Labels: labels(o),
	}
}

// labels are also the annotations of the index.
func labels(o Options) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":         "foresail",
		"org.opencontainers.image.description":   "Scales Kubernetes pods and worker nodes before their load arrives",
		"org.opencontainers.image.url":           "https://github.com/foresail/foresail",
		"org.opencontainers.image.source":        "https://github.com/foresail/foresail",
		"org.opencontainers.image.documentation": "https://github.com/foresail/foresail/tree/main/docs",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.version":       o.Version,
		"org.opencontainers.image.revision":      o.Revision,
		"org.opencontainers.image.created":       o.Created.UTC().Format(time.RFC3339),
	}
}

// Release is an image for several platforms, and an SBOM for each of them.
type Release struct {
	Index v1.ImageIndex
	// SBOMs refer to the images of Index, in their order.
	SBOMs []v1.Image
}

// Assemble makes a release of binaries, given by their paths, each of another platform.
func Assemble(o Options, binaries ...string) (Release, error) {
	if o.Version == "" || o.Created.IsZero() {
		return Release{}, errors.New("an image needs a version and the time of its commit")
	}
	r := Release{Index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	seen := map[string]string{}
	for _, path := range binaries {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return Release{}, err
		}
		platform, err := platformOf(info)
		if err != nil {
			return Release{}, fmt.Errorf("%s: %w", path, err)
		}
		if other, ok := seen[platform.String()]; ok {
			return Release{}, fmt.Errorf("%s and %s are both for %s: give one binary for each platform", other, path,
				platform)
		}
		seen[platform.String()] = path
		image, err := forPlatform(o, path, platform)
		if err != nil {
			return Release{}, fmt.Errorf("%s: %w", path, err)
		}
		described, err := partial.Descriptor(image)
		if err != nil {
			return Release{}, err
		}
		described.Platform = &platform
		r.Index = mutate.AppendManifests(r.Index, mutate.IndexAddendum{Add: image, Descriptor: *described})
		document, err := sbom.SPDX(info, o.Version, o.Created)
		if err != nil {
			return Release{}, fmt.Errorf("%s: %w", path, err)
		}
		attached, err := referrer(*described, "application/spdx+json", document, o.Created)
		if err != nil {
			return Release{}, err
		}
		r.SBOMs = append(r.SBOMs, attached)
	}
	if len(binaries) == 0 {
		return Release{}, errors.New("an image needs a binary")
	}
	r.Index = mutate.Annotations(r.Index, labels(o)).(v1.ImageIndex)
	return r, nil
}

// platformOf refuses a binary that does not run on an empty base.
func platformOf(info *debug.BuildInfo) (v1.Platform, error) {
	settings := build.Settings(info)
	if settings["GOOS"] != "linux" || settings["CGO_ENABLED"] != "0" {
		return v1.Platform{}, fmt.Errorf("built with GOOS=%s CGO_ENABLED=%s: must be linux and 0, as an empty image has no libraries", settings["GOOS"], settings["CGO_ENABLED"])
	}
	p := v1.Platform{OS: "linux", Architecture: settings["GOARCH"]}
	if p.Architecture == "arm64" {
		p.Variant = "v8"
	}
	return p, nil
}

func forPlatform(o Options, binary string, platform v1.Platform) (v1.Image, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
		Created: v1.Time{Time: o.Created.UTC()}, Config: config(o), RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, l := range []struct {
		comment string
		files   fstest.MapFS
	}{
		{"authorities and a user", system()},
		{"foresail", fstest.MapFS{"foresail": {Mode: 0o755, Data: content}}},
	} {
		layer, err := layerOf(l.files, o.Created)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: o.Created.UTC()}, CreatedBy: "internal/tools/release",
				Comment: l.comment},
		})
		if err != nil {
			return nil, err
		}
	}
	return image, nil
}

// referrer attaches a document to a manifest. Registries take the media type of its config for the
// type of the artifact.
func referrer(subject v1.Descriptor, mediaType types.MediaType, document []byte, created time.Time) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mediaType)
	image, err := mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(document, mediaType)})
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{"org.opencontainers.image.created": created.UTC().Format(time.RFC3339)}
	image = mutate.Annotations(image, annotations).(v1.Image)
	// The last of the changes: each of the others forgets the subject.
	subject = v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest}
	return mutate.Subject(image, subject).(v1.Image), nil
}

// certificates is where Go, and people, look for authorities. Whoever has one of their own mounts
// another file there.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

// system is what the binary needs of a base.
func system() fstest.MapFS {
	const folder = fs.ModeDir | 0o755
	return fstest.MapFS{
		"etc":            {Mode: folder},
		"etc/group":      {Mode: 0o644, Data: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", gid)},
		"etc/passwd":     {Mode: 0o644, Data: fmt.Appendf(nil, passwd, uid, gid)},
		"etc/ssl":        {Mode: folder},
		"etc/ssl/certs":  {Mode: folder},
		certificates[1:]: {Mode: 0o644, Data: authorities()},
	}
}

const passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/:/sbin/nologin\n"

// authorities are Mozilla's in PEM. It leaves out those that are trusted for older certificates
// alone: a file cannot say so.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return b.Bytes()
}

// layerOf packs files, all of root and of one time.
func layerOf(files fstest.MapFS, modified time.Time) (v1.Layer, error) {
	for _, f := range files {
		f.ModTime = modified.UTC()
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.AddFS(files), w.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

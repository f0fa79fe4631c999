package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"
	"time"

	"github.com/foresail/foresail/internal/tools/release/build"
	"github.com/foresail/foresail/internal/tools/release/sbom"
)

// archive is a binary for one platform, packed with the license.
type archive struct {
	os, arch string
	file     product
	binary   string // its name within the archive
	sbom     product
}

// archives packs binaries, each of another platform.
func archives(binaries []string, license, version string, modified time.Time) ([]archive, error) {
	licenseText, err := os.ReadFile(license)
	if err != nil {
		return nil, err
	}
	var packed []archive
	seen := map[string]string{}
	for _, file := range binaries {
		a, err := pack(file, licenseText, version, modified)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if other, ok := seen[a.file.name]; ok {
			return nil, fmt.Errorf("%s and %s are both for %s/%s: give one binary for each platform", other, file, a.os,
				a.arch)
		}
		seen[a.file.name] = file
		packed = append(packed, a)
	}
	return packed, nil
}

func pack(file string, license []byte, version string, modified time.Time) (archive, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return archive{}, err
	}
	built := build.Settings(info)
	a := archive{os: built["GOOS"], arch: built["GOARCH"], binary: filepath.Base(file)}
	content, err := os.ReadFile(file)
	if err != nil {
		return archive{}, err
	}
	name := fmt.Sprintf("foresail_%s_%s_%s", version, a.os, a.arch)
	document, err := sbom.SPDX(info, version, modified)
	if err != nil {
		return archive{}, err
	}
	a.sbom = product{name + ".spdx.json", document}
	packer, extension := tarball, ".tar.gz"
	if a.os == "windows" {
		packer, extension = zipFile, ".zip"
	}
	packed, err := packer(fstest.MapFS{
		"LICENSE": {Mode: 0o644, ModTime: modified.UTC(), Data: license},
		a.binary:  {Mode: 0o755, ModTime: modified.UTC(), Data: content},
	})
	a.file = product{name + extension, packed}
	return a, err
}

// tarball and zipFile pack files by name: the same files give the same bytes.
func tarball(files fstest.MapFS) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	err := errors.Join(w.AddFS(files), w.Close(), compressed.Close())
	return b.Bytes(), err
}

func zipFile(files fstest.MapFS) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	err := errors.Join(w.AddFS(files), w.Close())
	return b.Bytes(), err
}

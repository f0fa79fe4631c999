package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/foresail/foresail/internal/tools/release/image"
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
			return nil, fmt.Errorf("%s and %s are both for %s/%s: give one binary for each platform", other, file, a.os, a.arch)
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
	built := image.Settings(info)
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
	packed, err := packer(modified, entry{"LICENSE", 0o644, license}, entry{a.binary, 0o755, content})
	a.file = product{name + extension, packed}
	return a, err
}

// entry is a file within an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// tarball packs files in their order, the same to the byte whoever does it.
func tarball(modified time.Time, entries ...entry) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Clean(e.name), Mode: e.mode, Size: int64(len(e.content)), ModTime: modified.UTC()}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := compressed.Close()
	return b.Bytes(), err
}

func zipFile(modified time.Time, entries ...entry) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: modified.UTC()}
		header.SetMode(os.FileMode(e.mode))
		file, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// Command release makes the files that Foresail is installed from: install.yaml, the packed chart,
// SHA256SUMS, and with binaries an archive and an SBOM of each and a manifest for krew. Each has
// the date of the commit, SOURCE_DATE_EPOCH, so that a second run makes the same. `make dist` runs
// it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/foresail/foresail/internal/tools/release/build"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// distOptions say what a release is made of.
type distOptions struct {
	root     string
	version  string
	image    string
	binaries []string
	out      string
	created  time.Time
}

func run(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	var o distOptions
	flags.StringVar(&o.root, "root", "", "the `folder` with the repository")
	flags.StringVar(&o.version, "version", "", "the version of the release, such as v1.2.3")
	flags.StringVar(&o.image, "image", "",
		"the `folder` that the command image wrote, whose digest is named where the version is the same")
	flags.StringVar(&o.out, "out", "", "the `folder` to write to; what is there is replaced")
	err := flags.Parse(args)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"root": o.root, "version": o.version, "out": o.out} {
		if value == "" {
			return fmt.Errorf("--%s is missing", name)
		}
	}
	o.binaries = flags.Args()
	if o.created, err = build.Date(); err != nil {
		return err
	}
	files, err := o.files()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(o.out, f.name)
		if err := os.WriteFile(path, f.content, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(w, path)
	}
	return nil
}

// product is a file of a release.
type product struct {
	name    string
	content []byte
}

func (o distOptions) files() ([]product, error) {
	digest, err := o.digest()
	if err != nil {
		return nil, err
	}
	install, err := installManifest(o.root, o.version, digest)
	if err != nil {
		return nil, err
	}
	packaged, err := chartPackage(o.root, o.version, digest, o.created)
	if err != nil {
		return nil, err
	}
	files := []product{{"install.yaml", install}, packaged}
	if len(o.binaries) > 0 {
		packed, err := o.plugin()
		if err != nil {
			return nil, err
		}
		files = append(files, packed...)
	}
	return append(files, checksums(files)), nil
}

// plugin returns the archives with the command, what each consists of, and the manifest by which
// krew installs it for kubectl.
func (o distOptions) plugin() ([]product, error) {
	packed, err := archives(o.binaries, filepath.Join(o.root, "LICENSE"), o.version, o.created)
	if err != nil {
		return nil, err
	}
	var files []product
	for _, a := range packed {
		files = append(files, a.file, a.sbom)
	}
	manifest, err := krewManifest(o.version, packed)
	return append(files, manifest), err
}

// checksums are in the form that sha256sum --check reads.
func checksums(files []product) product {
	var lines []string
	for _, f := range files {
		lines = append(lines, sum(f.content)+"  "+f.name+"\n")
	}
	return product{"SHA256SUMS", []byte(strings.Join(lines, ""))}
}

// digest is that of the image of this version, "" if there is none.
func (o distOptions) digest() (string, error) {
	if o.image == "" {
		return "", nil
	}
	index, err := layout.ImageIndexFromPath(o.image)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return "", err
	}
	for _, described := range manifest.Manifests {
		if described.Annotations["org.opencontainers.image.ref.name"] == o.version {
			return described.Digest.String(), nil
		}
	}
	return "", nil
}

var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// chartVersion is the version as Helm wants it. One that is no release is before all of them.
func chartVersion(version string) string {
	if semantic.MatchString(version) {
		return version[1:]
	}
	return "0.0.0-g" + regexp.MustCompile(`[^0-9A-Za-z-]+`).ReplaceAllString(strings.TrimPrefix(version, "v"), "-")
}

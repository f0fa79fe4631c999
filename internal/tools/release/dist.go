package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// distOptions say what a release is made of.
type distOptions struct {
	root    string
	version string
	image   string
	out     string
	only    string // the one file to make, "" for all
}

func runDist(_ context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	var o distOptions
	flags.StringVar(&o.root, "root", "", "the `folder` with the repository")
	flags.StringVar(&o.version, "version", "", "the version of the release, such as v1.2.3")
	flags.StringVar(&o.image, "image", "", "the `folder` that release image wrote, whose digest is named where the version is the same")
	flags.StringVar(&o.out, "out", "", "the `folder` to write to; what is there is replaced")
	flags.StringVar(&o.only, "only", "", "the one `file` to make; empty is all of them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for name, value := range map[string]string{"root": o.root, "version": o.version, "out": o.out} {
		if value == "" {
			return fmt.Errorf("--%s is missing", name)
		}
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
	return []product{{"install.yaml", install}}, nil
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

// Package helm is the real Helm, of two major versions, and what tests of the chart share.
package helm

import (
	"context"
	"io"
	"path/filepath"

	"github.com/foresail/foresail/test/env/controlplane"
)

// Release is a major version of Helm.
type Release struct{ title, module, cache, source string }

// The versions that people run.
var (
	Current  = Release{"Helm 4", "test/suite/helm/components", "helm", "helm.sh/helm/v4"}
	Previous = Release{"Helm 3", "test/suite/helm/previous", "helm-previous", "helm.sh/helm/v3"}
)

const binary = "helm"

// Build builds Helm into .cache if it is missing, some three minutes on two cores or less than one
// after tests have been built, and returns its path.
func (r Release) Build(ctx context.Context, progress io.Writer) (string, error) {
	root, err := controlplane.Root()
	if err != nil {
		return "", err
	}
	dir, err := controlplane.Programs{
		Title: r.title, Module: r.module, Cache: r.cache,
		List:    []controlplane.Program{{Name: binary, Package: r.source + "/cmd/helm"}},
		Release: r.source,
		Stamp: func(version string) (string, error) {
			return "-X " + r.source + "/internal/version.version=" + version, nil
		},
	}.Build(ctx, root, progress)
	return filepath.Join(dir, binary), err
}

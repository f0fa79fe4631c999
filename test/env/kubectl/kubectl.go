// Package kubectl is the real kubectl, for tests that run the commands of the documentation.
package kubectl

import (
	"context"
	"io"
	"path/filepath"

	"github.com/foresail/foresail/test/env/controlplane"
)

const binary = "kubectl"

// Build builds kubectl into .cache if it is missing, some two minutes on two cores or less after
// tests have been built, and returns its path.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	root, err := controlplane.Root()
	if err != nil {
		return "", err
	}
	module := "github.com/foresail/foresail/test/env/kubectl/components"
	dir, err := controlplane.Programs{
		Title: "kubectl", Module: "test/env/kubectl/components", Cache: binary,
		List:    []controlplane.Program{{Name: binary, Package: module}},
		Release: "k8s.io/kubectl",
		Stamp: func(version string) (string, error) {
			return "-X k8s.io/component-base/version.gitVersion=" + version, nil
		},
	}.Build(ctx, root, progress)
	return filepath.Join(dir, binary), err
}

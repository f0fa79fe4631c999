package karpenter

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/foresail/foresail/test/env/controlplane"
)

const (
	module = "sigs.k8s.io/karpenter"
	binary = "karpenter-kwok"
	crds   = "crds"
)

// Binaries is a folder with Karpenter's program and its CRDs.
type Binaries struct{ dir string }

// Build builds what is missing into .cache: some minutes on two cores the first time, then nothing.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	root, err := controlplane.Root()
	if err != nil {
		return Binaries{}, err
	}
	dir, err := programs().Build(ctx, root, progress)
	return Binaries{dir}, err
}

func programs() controlplane.Programs {
	return controlplane.Programs{
		Title: "Karpenter", Module: "test/bench/karpenter/components", Cache: "karpenter",
		List:    []controlplane.Program{{Name: binary, Package: module + "/kwok"}},
		Release: module,
		Stamp: func(version string) (string, error) {
			return "-X " + module + "/pkg/operator.Version=" + strings.TrimPrefix(version, "v"), nil
		},
		Assets: controlplane.Assets{Module: module, Dir: crds, Files: []string{
			"kwok/charts/crds/autoscaling.x-k8s.io_capacitybuffers.yaml",
			"kwok/charts/crds/karpenter.sh_nodeclaims.yaml",
			"kwok/charts/crds/karpenter.sh_nodeoverlays.yaml",
			"kwok/charts/crds/karpenter.sh_nodepools.yaml",
			"kwok/apis/crds/karpenter.kwok.sh_kwoknodeclasses.yaml",
		}},
	}
}

func (b Binaries) path(name string) string { return filepath.Join(b.dir, name) }

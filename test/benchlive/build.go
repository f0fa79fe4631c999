package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/foresail/foresail/test/controlplane"
)

// What is built beside the control plane.
const (
	k6Binary           = "k6"
	kedaOperatorBinary = "keda-operator"
	kedaAdapterBinary  = "keda-adapter"
	kedaCRDs           = "crds"
)

func k6Programs() controlplane.Programs {
	return controlplane.Programs{
		Title: "k6", Module: "test/benchlive/k6", Cache: "k6",
		List:    []controlplane.Program{{Name: k6Binary, Package: "go.k6.io/k6"}},
		Release: "go.k6.io/k6",
		Stamp:   func(string) (string, error) { return "", nil }, // it knows its version
	}
}

func kedaPrograms() controlplane.Programs {
	const module = "github.com/kedacore/keda/v2"
	return controlplane.Programs{
		Title: "KEDA", Module: "test/benchlive/keda", Cache: "keda",
		List: []controlplane.Program{
			{Name: kedaOperatorBinary, Package: module + "/cmd/operator"},
			{Name: kedaAdapterBinary, Package: module + "/cmd/adapter"},
		},
		Release: module,
		Stamp: func(version string) (string, error) {
			return "-X " + module + "/version.Version=" + strings.TrimPrefix(version, "v"), nil
		},
		Assets: controlplane.Assets{Module: module, Dir: kedaCRDs, Files: []string{
			"config/crd/bases/keda.sh_scaledobjects.yaml",
			"config/crd/bases/keda.sh_scaledjobs.yaml",
			"config/crd/bases/keda.sh_triggerauthentications.yaml",
			"config/crd/bases/keda.sh_clustertriggerauthentications.yaml",
			"config/crd/bases/eventing.keda.sh_cloudeventsources.yaml",
			"config/crd/bases/eventing.keda.sh_clustercloudeventsources.yaml",
		}},
	}
}

// binaries is where the programs lie that are built for the benchmark. The path of one that is not desired is "".
type binaries struct {
	k6   string
	keda string // the folder
}

// buildBinaries builds what is missing into .cache: a minute for k6 and ten for KEDA the first time, then nothing.
func buildBinaries(ctx context.Context, withKEDA bool, progress io.Writer) (binaries, error) {
	root, err := controlplane.Root()
	if err != nil {
		return binaries{}, err
	}
	dir, err := k6Programs().Build(ctx, root, progress)
	if err != nil {
		return binaries{}, err
	}
	b := binaries{k6: filepath.Join(dir, k6Binary)}
	if withKEDA {
		b.keda, err = kedaPrograms().Build(ctx, root, progress)
	}
	return b, err
}

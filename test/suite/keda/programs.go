package keda

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/foresail/foresail/test/env/controlplane"
)

// Release is a release of KEDA that a module of this repository pins.
type Release struct {
	title, module, cache string
	patchesAPIServices   bool // unless a flag of the operator turns that off
}

// The releases there are. Both are of go.mod files below this package.
var (
	Current = Release{"KEDA", "test/suite/keda/components", "keda", true}
	// Oldest is that of docs/keda.md#versions: before StreamMetricSpec, and with values cut off
	// after three decimals.
	Oldest = Release{"the oldest KEDA", "test/suite/keda/oldest", "keda-oldest", false}
)

const (
	kedaModule     = "github.com/kedacore/keda/v2"
	operatorBinary = "keda-operator"
	adapterBinary  = "keda-adapter"
	crds           = "crds"
)

// Binaries is a folder with the programs of a release and its CRDs.
type Binaries struct {
	dir     string
	release Release
}

// Build builds what is missing of a release into .cache: ten minutes on two cores the first time,
// then nothing.
func Build(ctx context.Context, r Release, progress io.Writer) (Binaries, error) {
	root, err := controlplane.Root()
	if err != nil {
		return Binaries{}, err
	}
	dir, err := r.programs().Build(ctx, root, progress)
	return Binaries{dir, r}, err
}

func (r Release) programs() controlplane.Programs {
	return controlplane.Programs{
		Title: r.title, Module: r.module, Cache: r.cache,
		List: []controlplane.Program{
			{Name: operatorBinary, Package: kedaModule + "/cmd/operator"},
			{Name: adapterBinary, Package: kedaModule + "/cmd/adapter"},
		},
		Release: kedaModule,
		Stamp: func(version string) (string, error) {
			return "-X " + kedaModule + "/version.Version=" + strings.TrimPrefix(version, "v"), nil
		},
		Assets: controlplane.Assets{Module: kedaModule, Dir: crds, Files: []string{
			"config/crd/bases/keda.sh_scaledobjects.yaml",
			"config/crd/bases/keda.sh_scaledjobs.yaml",
			"config/crd/bases/keda.sh_triggerauthentications.yaml",
			"config/crd/bases/keda.sh_clustertriggerauthentications.yaml",
			"config/crd/bases/eventing.keda.sh_cloudeventsources.yaml",
			"config/crd/bases/eventing.keda.sh_clustercloudeventsources.yaml",
		}},
	}
}

func (b Binaries) path(name string) string { return filepath.Join(b.dir, name) }

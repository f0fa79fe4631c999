package main

import (
	"context"
	"io"
	"path/filepath"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/suite/keda"
)

// What is built beside the control plane and KEDA.
const k6Binary = "k6"

func k6Programs() controlplane.Programs {
	return controlplane.Programs{
		Title: "k6", Module: "test/bench/live/k6", Cache: "k6",
		List:    []controlplane.Program{{Name: k6Binary, Package: "go.k6.io/k6"}},
		Release: "go.k6.io/k6",
		Stamp:   func(string) (string, error) { return "", nil }, // it knows its version
	}
}

// binaries is where the programs lie that are built for the benchmark. One that is not desired is
// the zero value.
type binaries struct {
	k6   string
	keda keda.Binaries
}

// buildBinaries builds what is missing into .cache: a minute for k6 and ten for KEDA the first
// time, then nothing.
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
		b.keda, err = keda.Build(ctx, keda.Current, progress)
	}
	return b, err
}

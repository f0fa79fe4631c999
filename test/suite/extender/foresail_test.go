package extender

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/ports"
)

// extenderProcess is a foresail with the extender.
type extenderProcess struct {
	*foresail.Process
	t       *testing.T
	address string // of the extender: host:port
	probe   *probe
}

var processes atomic.Int64

// startPools starts the process that runs the WorkerPools of all tests. Were it one of each test,
// the end of one would leave the pools of others without a leader until the lease expires.
func startPools(ctx context.Context) (*foresail.Process, error) {
	program, err := binary()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := cluster.KubeconfigForServiceAccount(ctx, foresail.Namespace, foresail.ServiceAccount)
	if err != nil {
		return nil, err
	}
	p, err := foresail.Start(foresail.Options{
		Name: "pools", Binary: program, Dir: cluster.Dir(), Home: home(), Flags: []string{"--enable", "nodepool",
			"--kubeconfig", kubeconfig},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p, p.WaitReady(ctx)
}

// account is that of the extender on a control plane: what it may do is not mixed with what the
// process that runs WorkerPools may.
const account = "foresail-extender"

// startForesail starts a process with the extender, as the manifests would, and waits until it is ready.
func startForesail(t *testing.T, flags ...string) *extenderProcess {
	t.Helper()
	program, err := binary()
	require.NoError(t, err)
	kubeconfig, err := cluster.KubeconfigForServiceAccount(t.Context(), foresail.Namespace, account)
	require.NoError(t, err)
	address, err := ports.TakeAddress()
	require.NoError(t, err)
	cert, _, err := cluster.ServingCertificate("127.0.0.1", "localhost")
	require.NoError(t, err)
	f := &extenderProcess{t: t, address: address}
	f.Process = foresail.StartFor(t, foresail.Options{
		Name: fmt.Sprintf("foresail-%d", processes.Add(1)), Binary: program, Dir: cluster.Dir(), Home: home(),
		Flags: append([]string{
			"--enable", "extender", "--kubeconfig", kubeconfig,
			"--extender-address", address, "--extender-cert-dir", filepath.Dir(cert),
		}, flags...),
	})
	f.probe = newProbe(t, address, "http://"+f.Address)
	f.waitReady()
	return f
}

// start starts the process again, once it is gone, and waits until it is ready.
func (f *extenderProcess) start() {
	f.t.Helper()
	require.NoError(f.t, f.Restart())
	f.waitReady()
}

func (f *extenderProcess) waitReady() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	require.NoError(f.t, f.WaitReady(ctx))
}

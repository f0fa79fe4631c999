package stack

import (
	"context"

	"github.com/foresail/foresail/test/env/foresail"
)

// Adapter is a running foresail process that serves external metrics.
type Adapter struct {
	*foresail.Process
	SecurePort int
}

// StartAdapter runs foresail under the service account of the manifests, with further flags if any
// are given. It does not wait for it to be ready. The process ends with ctx at the latest.
func (s *Stack) StartAdapter(ctx context.Context, name string, flags ...string) (*Adapter, error) {
	own, port, err := foresail.AdapterFlags(ctx, s.Cluster)
	if err != nil {
		return nil, err
	}
	p, err := foresail.Start(foresail.Options{Name: name, Binary: s.binary, Dir: s.Cluster.Dir(),
		Flags: append(own, flags...)})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = p.Stop() }) // another Stop returns the same error
	return &Adapter{p, port}, nil
}

// Register has the API server send requests for external metrics to an adapter, and waits until it does.
func (s *Stack) Register(ctx context.Context, a *Adapter) error {
	return foresail.Register(ctx, s.Cluster, a.SecurePort)
}

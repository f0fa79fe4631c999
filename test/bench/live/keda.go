package main

import (
	"context"

	"github.com/foresail/foresail/test/suite/keda"
)

// startKEDA runs KEDA until close.
func (s *stage) startKEDA(ctx context.Context) error {
	k, err := keda.Start(ctx, s.stack.Cluster, s.binaries.keda)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, k.Stop)
	return nil
}

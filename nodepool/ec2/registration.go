package ec2

import (
	"context"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/interruption"
	"github.com/foresail/foresail/nodepool/provider"
)

// Registration returns the registration of the provider. All pools share the limits of calls.
func Registration() provider.Registration {
	return provider.Registration{Name: "ec2", New: newFactory}
}

func newFactory(env provider.Environment) provider.Factory {
	limits := NewLimits(DefaultShare)
	return func(ctx context.Context, pool *v1alpha1.WorkerPool) (provider.Parts, error) {
		spec := pool.Spec.Provider.EC2
		cluster, err := env.Cluster(ctx)
		if err != nil {
			return provider.Parts{}, err
		}
		instances, err := New(ctx, Options{
			Cluster: cluster, Pool: pool.Name, Spec: *spec, Template: pool.Spec.Template, Limits: limits, Prices: env.Prices,
			MaxPrice: pool.Spec.Market.MaxPrice,
			Spot:     pool.Spec.Market.SpotRatio != nil && pool.Spec.Market.SpotRatio.Sign() > 0,
		})
		if err != nil || spec.InterruptionQueue == "" {
			return provider.Parts{Provider: instances}, err
		}
		queue, err := interruption.New(ctx, interruption.Options{Queue: spec.InterruptionQueue})
		if err != nil {
			return provider.Parts{}, err
		}
		return provider.Parts{Provider: instances, Notices: queue}, nil
	}
}

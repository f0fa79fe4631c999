package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/prices"
)

// Registration makes one kind of provider known. One list in cmd/foresail has all of them.
type Registration struct {
	// Name is the field of [v1alpha1.PoolProvider] that selects the provider.
	Name string
	// New is called once in a process. What all pools share, such as limits of calls, is made here.
	New func(Environment) Factory
}

// Environment is what all providers are given.
type Environment struct {
	Kubernetes kubernetes.Interface
	// Cluster returns an id that no other cluster has, ever.
	Cluster func(context.Context) (string, error)
	// Prices are those of a file; nil: a provider asks its cloud.
	Prices prices.Prices
}

// Factory makes what one pool needs of its provider, which its spec selects. The spec has its defaults. It makes no call to
// the cloud. Errors name the field below the provider's own that is wrong.
type Factory func(ctx context.Context, pool *v1alpha1.WorkerPool) (Parts, error)

// Parts is what one pool needs of its provider.
type Parts struct {
	Provider Provider
	Notices  Notices                         // nil: nobody reports interruptions
	Run      func(ctx context.Context) error // runs beside the pool until its context ends; nil = nothing has to
}

// Set is factories by the fields of [v1alpha1.PoolProvider] that select them.
type Set map[string]Factory

// NewSet prepares all registered providers. It fails unless exactly those are registered that the API has a field for.
func NewSet(registered []Registration, env Environment) (Set, error) {
	fields := v1alpha1.ProviderNames()
	set := Set{}
	var errs []error
	for _, r := range registered {
		switch {
		case !slices.Contains(fields, r.Name):
			errs = append(errs, fmt.Errorf("provider %s: registered, but spec.provider has no such field: must be one of %s", r.Name, strings.Join(fields, ", ")))
		case set[r.Name] != nil:
			errs = append(errs, fmt.Errorf("provider %s: registered twice", r.Name))
		default:
			set[r.Name] = r.New(env)
		}
	}
	for _, field := range fields {
		if set[field] == nil {
			errs = append(errs, fmt.Errorf("provider %s: not registered, but spec.provider has a field for it", field))
		}
	}
	return set, errors.Join(errs...)
}

// Build makes what a pool needs of the provider that its spec selects.
func (s Set) Build(ctx context.Context, pool *v1alpha1.WorkerPool) (Parts, error) {
	name, _ := pool.Spec.Provider.Selected()
	build := s[name]
	if build == nil {
		return Parts{}, fmt.Errorf("provider: %q: must be one of %s", name, strings.Join(v1alpha1.ProviderNames(), ", "))
	}
	parts, err := build(ctx, pool)
	if err != nil {
		return Parts{}, fmt.Errorf("provider.%s: %w", name, err)
	}
	return parts, nil
}

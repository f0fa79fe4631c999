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

// Registration registers one kind of provider. A list in internal/cli/serve has all of them.
type Registration struct {
	// Name is the field of [v1alpha1.PoolProvider] that selects the provider.
	Name string
	// New is called once in a process. It creates what all pools share, such as limits of calls.
	New func(Environment) Factory
}

// Environment has the dependencies of all providers.
type Environment struct {
	Kubernetes kubernetes.Interface
	// Cluster returns an id that no other cluster will ever have.
	Cluster func(context.Context) (string, error)
	// Prices are read from a file; nil: a provider queries its cloud.
	Prices prices.Prices
}

// Factory creates the parts of one pool from its spec, which has its defaults. It makes no call to the cloud. Errors
// name the invalid field below the provider's own.
type Factory func(ctx context.Context, pool *v1alpha1.WorkerPool) (Parts, error)

// Parts are the parts of one pool that its provider creates.
type Parts struct {
	Provider Provider
	Notices  Notices                         // nil: interruptions are not reported
	Run      func(ctx context.Context) error // runs with the pool until its context ends; nil = nothing
}

// Set has factories by the fields of [v1alpha1.PoolProvider] that select them.
type Set map[string]Factory

// NewSet creates the factories of all registered providers. It fails if these are not exactly the API's fields.
func NewSet(registered []Registration, env Environment) (Set, error) {
	fields := v1alpha1.ProviderNames()
	set := Set{}
	var errs []error
	for _, r := range registered {
		switch {
		case !slices.Contains(fields, r.Name):
			errs = append(errs, fmt.Errorf("provider %s: registered, but spec.provider has no such field: must be one of %s",
				r.Name, strings.Join(fields, ", ")))
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

// Build creates the parts of a pool with the provider that its spec selects.
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

package provider_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/provider"
)

// registration returns a provider whose pools cannot be built, with an error that names it.
func registration(name string) provider.Registration {
	return provider.Registration{Name: name, New: func(provider.Environment) provider.Factory {
		return func(context.Context, *v1alpha1.WorkerPool) (provider.Parts, error) {
			return provider.Parts{}, errors.New(name + " fails")
		}
	}}
}

func TestEveryProviderIsRegisteredOnce(t *testing.T) {
	for name, c := range map[string]struct {
		registered []string
		want       []string // parts of the error; none = no error
	}{
		"all":     {v1alpha1.ProviderNames(), nil},
		"unwired": {[]string{"simulated"}, []string{"provider ec2: not registered, but spec.provider has a field for it"}},
		"unknown": {append(v1alpha1.ProviderNames(), "moon"), []string{
			"provider moon: registered, but spec.provider has no such field: must be one of ec2, simulated",
		}},
		"twice": {append(v1alpha1.ProviderNames(), "ec2"), []string{"provider ec2: registered twice"}},
		"none":  {nil, []string{"provider ec2: not registered", "provider simulated: not registered"}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []provider.Registration
			for _, r := range c.registered {
				all = append(all, registration(r))
			}
			_, err := provider.NewSet(all, provider.Environment{})
			if c.want == nil {
				require.NoError(t, err)
			}
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestBuildOfTheSelectedProvider(t *testing.T) {
	registered := []provider.Registration{registration("ec2"), registration("simulated")}
	set, err := provider.NewSet(registered, provider.Environment{})
	require.NoError(t, err)
	pool := &v1alpha1.WorkerPool{}
	pool.Spec.Provider.EC2 = &v1alpha1.EC2Provider{}
	_, err = set.Build(t.Context(), pool)
	assert.EqualError(t, err, "provider.ec2: ec2 fails")
	_, err = set.Build(t.Context(), &v1alpha1.WorkerPool{})
	assert.EqualError(t, err, `provider: "": must be one of ec2, simulated`)
}

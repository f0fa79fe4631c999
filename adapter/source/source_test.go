package source

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/api/v1alpha1"
)

// fake is a source that keeps which keys were set.
type fake struct {
	keys map[types.NamespacedName]bool
	err  error
}

func (f *fake) Set(key types.NamespacedName, _ *v1alpha1.PredictedMetricSpec, _ *podtracker.TargetPods, _ Sink) error {
	f.keys[key] = true
	return f.err
}

func (f *fake) Remove(key types.NamespacedName) { delete(f.keys, key) }

func (f *fake) Run(context.Context) error { return nil }

func registration(name string) Registration {
	return Registration{Name: name,
		New: func(Environment) (Source, error) { return &fake{keys: map[types.NamespacedName]bool{}}, nil }}
}

func registrations() (all []Registration) {
	for _, name := range v1alpha1.SourceNames() {
		all = append(all, registration(name))
	}
	return all
}

func TestNewSetRequiresASourceForEachFieldOfTheAPI(t *testing.T) {
	set, err := NewSet(registrations(), Environment{})
	require.NoError(t, err)
	assert.Len(t, set, len(v1alpha1.SourceNames()))
	for i, name := range v1alpha1.SourceNames() {
		assert.NotNil(t, set[name])
		all := registrations()
		_, err := NewSet(append(all[:i], all[i+1:]...), Environment{})
		assert.EqualError(t, err, "source "+name+": not registered, but spec.source has a field for it")
	}
	_, err = NewSet(append(registrations(), registration("pods")), Environment{})
	require.EqualError(t, err, "source pods: registered twice")
	_, err = NewSet(append(registrations(), registration("files")), Environment{})
	require.ErrorContains(t, err, "source files: registered, but spec.source has no such field: must be one of pods, ")
	broken := registrations()
	broken[0].New = func(Environment) (Source, error) { return nil, errors.New("no client") }
	_, err = NewSet(broken, Environment{})
	assert.EqualError(t, err, "source "+broken[0].Name+": no client")
}

func TestApplyFeedsFromTheSelectedSourceAlone(t *testing.T) {
	pods, prometheus := &fake{keys: map[types.NamespacedName]bool{}}, &fake{keys: map[types.NamespacedName]bool{}}
	set := Set{"pods": pods, "prometheus": prometheus}
	key := types.NamespacedName{Namespace: "shop", Name: "checkout"}
	of := func(s v1alpha1.Source) *v1alpha1.PredictedMetricSpec { return &v1alpha1.PredictedMetricSpec{Source: s} }

	require.NoError(t, set.Apply(key, of(v1alpha1.Source{Pods: &v1alpha1.PodsSource{}}), nil, nil))
	assert.True(t, pods.keys[key])
	prometheus.err = errors.New("address: must be a URL")
	err := set.Apply(key, of(v1alpha1.Source{Prometheus: &v1alpha1.PrometheusSource{}}), nil, nil)
	assert.EqualError(t, err, "spec.source.prometheus: address: must be a URL")
	assert.False(t, pods.keys[key], "the previous source must stop")
	assert.True(t, prometheus.keys[key])

	err = set.Apply(key, of(v1alpha1.Source{Resource: &v1alpha1.ResourceSource{}}), nil, nil)
	assert.EqualError(t, err, `spec.source: "resource": must be one of pods, prometheus`)
	assert.Empty(t, prometheus.keys, "the previous source must stop")

	pods.keys[key] = true
	set.Remove(key)
	assert.Empty(t, pods.keys)
}

package v1alpha1

import (
	"reflect"
)

// Default fills in every absent field that has a default, as the API server does. The default of signals[].for
// depends on the source of a signal, so it stays absent.
func (s *WorkerPoolSpec) Default() {
	for _, d := range poolDefaults {
		fillIn(reflect.ValueOf(s).Elem(), d.field, d.value)
	}
}

// Default fills in every absent field that has a default.
func (p *EC2Provider) Default() {
	spec := WorkerPoolSpec{Provider: PoolProvider{EC2: p}}
	spec.Default()
}

// Default fills in every absent field that has a default.
func (p *SimulatedProvider) Default() {
	spec := WorkerPoolSpec{Provider: PoolProvider{Simulated: p}}
	spec.Default()
}

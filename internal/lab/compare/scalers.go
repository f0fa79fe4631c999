package compare

import (
	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler"
)

// Rival is the scaler that the others are compared with, seed by seed.
const Rival = "keda"

// Bound is the scaler whose pods the others' are a multiple of: the fewest that hold the threshold for who knows the future.
const Bound = "clairvoyant"

// ScalerNames returns the scalers that can be compared: first those that there are, then those whose HPA behaves otherwise.
func ScalerNames() []string { return scaler.AllNames() }

// newScaler makes the scaler of a name, with a change of what it would have; nil = none.
func newScaler(name string, s scaler.Setup, change func(*scaler.Setup)) (lab.Scaler, error) {
	s.Behavior = scaler.RecommendedBehavior()
	if name != Bound {
		s.Startup = 0 // nobody else knows: they assume what their settings say, until they have seen pods start
	}
	if change != nil {
		change(&s)
	}
	return scaler.New(name, s)
}

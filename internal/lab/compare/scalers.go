package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler"
)

// Rival is the scaler that the others are compared with, seed by seed.
const Rival = "keda"

// hpaDefaults is the ending of the names of scalers whose HPA has its own defaults instead of what docs/hpa.md recommends.
const hpaDefaults = "/hpa-defaults"

// throughHPA are the scalers that set the behaviour of the HPA that they go through.
var throughHPA = []string{"foresail-total", "foresail-load", "foresail-replicas"}

// ScalerNames returns the scalers that can be compared. Those that go through an HPA are there twice.
func ScalerNames() []string {
	var names []string
	for _, name := range scaler.Names() {
		names = append(names, name)
		if slices.Contains(throughHPA, name) {
			names = append(names, name+hpaDefaults)
		}
	}
	return names
}

// newScaler makes the scaler of a name, with a change of what it would have; nil = none.
func newScaler(name string, s scaler.Setup, change func(*scaler.Setup)) (lab.Scaler, error) {
	base, defaults := strings.CutSuffix(name, hpaDefaults)
	if defaults && !slices.Contains(throughHPA, base) {
		return nil, fmt.Errorf("scaler %q: want one of %s", name, strings.Join(ScalerNames(), ", "))
	}
	if !defaults {
		s.Behavior = scaler.RecommendedBehavior()
	}
	if base != "clairvoyant" {
		s.Startup = 0 // nobody else knows: they assume what their settings say, until they have seen pods start
	}
	if change != nil {
		change(&s)
	}
	return scaler.New(base, s)
}

package scaler

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/foresail/foresail/internal/lab"
)

type maker struct {
	name string
	make func(Setup) (lab.Scaler, error)
}

var makers = []maker{
	{"hpa-cpu", asItComes(newCPU)},
	{"keda", asItComes(newKEDA)},
	{"paper", newPaper},
	{"foresail-total", throughHPA(loadTotal)},
	{"foresail-load", throughHPA(loadPerPod)},
	{"foresail-replicas", throughHPA(replicas)},
	{"foresail-direct", newDirect},
	{"clairvoyant", newClairvoyant},
	{"instant", newInstant},
}

// variations are scalers whose HPA behaves as that of others does: what is left between the two is what they read.
var variations = []maker{
	{"hpa-cpu/same-behavior", behaving(newCPU)},
	{"keda/same-behavior", behaving(newKEDA)},
	{"foresail-total/hpa-defaults", withDefaults(throughHPA(loadTotal))},
	{"foresail-load/hpa-defaults", withDefaults(throughHPA(loadPerPod))},
	{"foresail-replicas/hpa-defaults", withDefaults(throughHPA(replicas))},
}

// Names returns the names of the scalers that there are, in the order in which results list them.
func Names() []string { return namesOf(makers) }

// Variations returns the names of scalers whose HPA behaves otherwise, which results list after the others:
// NAME/same-behavior behaves as Setup.Behavior says, as those of foresail-* do, and NAME/hpa-defaults as an HPA does of which
// nobody says how.
func Variations() []string { return namesOf(variations) }

// AllNames returns all that [New] knows.
func AllNames() []string { return slices.Concat(Names(), Variations()) }

func namesOf(all []maker) []string {
	names := make([]string, 0, len(all))
	for _, m := range all {
		names = append(names, m.name)
	}
	return names
}

// reactive makes a scaler that forecasts nothing, with a behaviour of its HPA; nil = none.
type reactive func(Setup, *autoscalingv2.HorizontalPodAutoscalerBehavior) (lab.Scaler, error)

func asItComes(of reactive) func(Setup) (lab.Scaler, error) {
	return func(s Setup) (lab.Scaler, error) { return of(s, nil) }
}

func behaving(of reactive) func(Setup) (lab.Scaler, error) {
	return func(s Setup) (lab.Scaler, error) { return of(s, s.Behavior) }
}

func withDefaults(of func(Setup) (lab.Scaler, error)) func(Setup) (lab.Scaler, error) {
	return func(s Setup) (lab.Scaler, error) {
		s.Behavior = nil
		return of(s)
	}
}

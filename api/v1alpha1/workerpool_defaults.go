package v1alpha1

import (
	"reflect"
	"slices"
)

// PoolDefault is the default of one field of a WorkerPoolSpec, as YAML writes it.
type PoolDefault struct {
	Field string // path in the spec, such as idle.for; [] stands for every item of a list
	Value string
}

// poolDefaults is the one table of defaults of a WorkerPool. A test holds the CRD to it. A field below one that is absent,
// such as a provider, has no default. The defaults of signals[].for and forecast.scaleDownMargin depend on the source of a signal, so
// they stay absent.
var poolDefaults = []PoolDefault{
	{"maxBatchUp", "0"},
	{"maxBatchDown", "10"},
	{"signals", `[{"name":"requests","threshold":"1"}]`},
	{"signals[].prometheus.value", "Sum"},
	{"mode", "Any"},
	{"pending.for", "0s"},
	{"pending.podsPerNode", "10"},
	{"idle.for", "15s"},
	{"idle.waitCost", "1"},
	{"idle.cpu", "300m"},
	{"idle.memory", "500m"},
	{"cooldown.up", "0s"},
	{"cooldown.down", "0s"},
	{"seasonal.prometheus.value", "Sum"},
	{"seasonal.weeks", "1"},
	{"seasonal.minConfidence", "500m"},
	{"forecast.interval", "15s"},
	{"forecast.window", "15m"},
	{"forecast.redistributionTimeout", "3m"},
	{"forecast.startupTime", "1m"},
	{"forecast.horizonMin", "30s"},
	{"forecast.horizonMax", "10m"},
	{"market.spotRatio", "0"},
	{"join.timeout", "10m"},
	{"join.keepFailedFor", "15m"},
	{"drain.timeout", "5m"},
	{"disruption.budgets", `[{"nodes":"10%"}]`},
	{"disruption.consolidationPolicy", "WhenUnderutilized"},
	{"disruption.repair.after", "30m"},
	{"removalOrder", `["FullestZone","Idlest","FewestPods","Oldest"]`},
	{"deletionPolicy", "Drain"},
	{"provider.ec2.requirements.architecture", "amd64"},
	{"provider.ec2.requirements.previousGeneration", "Included"},
	{"provider.ec2.requirements.burstablePerformance", "Excluded"},
	{"provider.ec2.requirements.accelerators", "Excluded"},
	{"provider.ec2.requirements.bareMetal", "Excluded"},
	{"provider.ec2.launchTemplateVersion", "$Default"},
	{"provider.ec2.tagPrefix", "foresail.dev"},
	{"provider.simulated.joinDelay", "30s"},
	{"provider.simulated.zones", `["a","b"]`},
	{"provider.simulated.shape", `{"cpu":"2","memory":"4Gi","pods":"110"}`},
	{"provider.simulated.namespace", "foresail-simulated"},
	{"state.dynamodb.hashKey", "clusterId"},
}

// PoolDefaults returns the table of defaults of a WorkerPool.
func PoolDefaults() []PoolDefault { return slices.Clone(poolDefaults) }

// Default fills in every absent field that has a default, as the API server does.
func (s *WorkerPoolSpec) Default() {
	for _, d := range poolDefaults {
		fillIn(reflect.ValueOf(s).Elem(), d.Field, d.Value)
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

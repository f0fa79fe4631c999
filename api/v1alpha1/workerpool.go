package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkerPool keeps a number of worker nodes ahead of the load: it launches instances before pods need them, and drains
// and terminates them when nobody does. Deleting a WorkerPool leaves its instances running; one of the same name takes them over.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=wp,categories=foresail
// +kubebuilder:printcolumn:name="Workers",type=integer,JSONPath=`.status.workers`,description="The workers that count"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyWorkers`,description="Those of them whose Node is Ready"
// +kubebuilder:printcolumn:name="Wanted",type=integer,JSONPath=`.status.wanted`,description="The workers that the last decision asked for"
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.min`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.max`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pendingPods`,description="Pods that no node takes and that a node of the pool could run"
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.status.action.kind`,description="The action that is open"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.decisions[0].reason`,description="Why the last decision was made"
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`,description="Whether the pool can do what it decides"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must have at most 63 characters: it is the value of labels and tags"
type WorkerPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec WorkerPoolSpec `json:"spec"`
	// +optional
	Status WorkerPoolStatus `json:"status,omitzero"`
}

// WorkerPoolList is a list of WorkerPools.
//
// +kubebuilder:object:root=true
type WorkerPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkerPool `json:"items"`
}

// WorkerPoolSpec says what the workers are, how many there may be, and what they are counted by.
//
// +kubebuilder:validation:XValidation:rule="self.max >= self.min",message="max must be at least min",fieldPath=".max"
// +kubebuilder:validation:XValidation:rule="!has(self.market.onDemandBase) || self.market.onDemandBase <= self.max",message="market.onDemandBase must be at most max",fieldPath=".market.onDemandBase"
// +kubebuilder:validation:XValidation:rule="duration(self.forecast.window) >= duration(self.forecast.interval) + duration(self.forecast.interval)",message="forecast.window must be at least two intervals",fieldPath=".forecast.window"
// +kubebuilder:validation:XValidation:rule="duration(self.forecast.interval) < duration('1s') || duration(self.forecast.window).getSeconds() <= 10000 * duration(self.forecast.interval).getSeconds()",message="forecast.window must be at most 10000 intervals",fieldPath=".forecast.window"
// +kubebuilder:validation:XValidation:rule="duration(self.forecast.horizonMax) >= duration(self.forecast.horizonMin)",message="forecast.horizonMax must be at least forecast.horizonMin",fieldPath=".forecast.horizonMax"
//
// The rules on two fields stand here, as rules of forecast or market would refuse the default {} of these.
type WorkerPoolSpec struct {
	// The fewest workers. Below it new ones are launched at once, past all cooldowns.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="min must be at least 0"
	Min int32 `json:"min"`

	// The most workers.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000",message="max must be from 1 to 10000"
	Max int32 `json:"max"`

	// The most workers that one scale-up launches; 0 is no limit of its own: as many as are asked for, at most 500.
	// +optional
	// +default=2
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 500",message="maxBatchUp must be from 0 to 500"
	MaxBatchUp *int32 `json:"maxBatchUp,omitempty"`

	// The most workers that one scale-down removes, one after the other.
	// +optional
	// +default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 500",message="maxBatchDown must be from 1 to 500"
	MaxBatchDown *int32 `json:"maxBatchDown,omitempty"`

	// What load is told by; each its own forecast, and the one that wants most workers wins.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +default=[{"name":"requests","threshold":"700m"}]
	// +kubebuilder:validation:MinItems=1
	Signals []PoolSignal `json:"signals,omitempty"`

	// Any launches workers as soon as a signal or pending pods ask; All only if the signals and pending pods both do.
	// +optional
	// +default="Any"
	Mode PoolMode `json:"mode,omitempty"`

	// When pods that no node takes are demand, and how much.
	// +optional
	// +default={}
	Pending PendingPolicy `json:"pending,omitzero"`

	// When the pool has too many workers.
	// +optional
	// +default={}
	Idle IdlePolicy `json:"idle,omitzero"`

	// How long after an action, when it has been verified, the next one may begin.
	// +optional
	// +default={}
	Cooldown PoolCooldown `json:"cooldown,omitzero"`

	// The workers that past weeks needed at the hour to come: it can raise the number of workers, never lower it.
	// +optional
	Seasonal *SeasonalFloor `json:"seasonal,omitempty"`

	// How forecasts of the signals are made.
	// +optional
	// +default={}
	Forecast PoolForecast `json:"forecast,omitzero"`

	// How instances are bought.
	// +optional
	// +default={}
	Market MarketPolicy `json:"market,omitzero"`

	// When a launch has failed.
	// +optional
	// +default={}
	Join JoinPolicy `json:"join,omitzero"`

	// How nodes are emptied before their instances are terminated.
	// +optional
	// +default={}
	Drain DrainPolicy `json:"drain,omitzero"`

	// The order in which workers are compared for removal: of two the first scorer that tells them apart decides. FullestZone removes
	// from the zone with most workers, Idlest the one that uses least, FewestPods the one with fewest pods, Oldest the one that has
	// been there for longest.
	// +optional
	// +default=["FullestZone","Idlest","FewestPods","Oldest"]
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:MinItems=1
	Victims []VictimScorer `json:"victims,omitempty"`

	// What a new node comes up with, beside the labels of its zone and instance type. Pods that need other labels, or do not
	// tolerate the taints, are no demand for this pool. Two pools that could both run a pod both launch for it: labels that
	// pods ask for, or taints, keep pools apart.
	// +optional
	Template NodeTemplate `json:"template,omitzero"`

	// Where instances come from. Exactly one of its fields must be given.
	// +required
	Provider PoolProvider `json:"provider"`

	// Where the journal is kept.
	// +optional
	// +default={}
	State PoolState `json:"state,omitzero"`

	// Who else is told.
	// +optional
	// +default={}
	Notify PoolNotify `json:"notify,omitzero"`

	// Decides and tells, and does nothing.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// PoolMode says how triggers combine.
//
// +kubebuilder:validation:Enum=Any;All
type PoolMode string

// The modes.
const (
	PoolModeAny PoolMode = "Any"
	PoolModeAll PoolMode = "All"
)

// PoolSignal is a metric that load is told by.
//
// +kubebuilder:validation:XValidation:rule="(self.name == 'requests') != has(self.prometheus)",message="signals[].prometheus must be given, but not for the signal requests",fieldPath=".prometheus"
// +kubebuilder:validation:XValidation:rule="!has(self.downThreshold) || quantity(string(self.downThreshold)).isLessThan(quantity(string(self.threshold)))",message="signals[].downThreshold must be below threshold",fieldPath=".downThreshold"
type PoolSignal struct {
	// requests (the requests of pods against what nodes can allocate, from the API alone), or the name of a metric that
	// prometheus tells. The names cpu and memory tell the idle policy how much of the workers is in use.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="signals[].name must be lowercase letters, digits and -, such as cpu"
	Name string `json:"name"`

	// What the metric of a worker should stay below, in its units.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="signals[].threshold must be a quantity above 0, such as 700m"
	Threshold resource.Quantity `json:"threshold"`

	// What the metric of the workers must be below for one of them to be removed. Absent, the threshold with the margin of
	// forecast decides alone.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="signals[].downThreshold must be a quantity above 0, such as 300m"
	DownThreshold *resource.Quantity `json:"downThreshold,omitempty"`

	// For how long the signal must ask for more workers before it is heard: 0s for requests, which are promises, and 3m for
	// what is measured.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="signals[].for must be a duration of 0s or more, such as 3m"
	For *metav1.Duration `json:"for,omitempty"`

	// Where the values come from: for every signal but requests.
	// +optional
	Prometheus *SignalQuery `json:"prometheus,omitempty"`
}

// SignalQuery asks a Prometheus server.
//
// +kubebuilder:validation:XValidation:rule="!has(self.nodeLabel) || self.value != 'Level'",message="prometheus.value must be Sum where nodeLabel is given",fieldPath=".value"
type SignalQuery struct {
	// The URL of the server, below which /api/v1/query_range is. Absent, it is the one that Foresail was started with. Credentials
	// for it are Foresail's own configuration.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && url(self).getQuery().size() == 0 && !self.contains('#') && !self.contains('@')",message="prometheus.address must be an http or https URL without credentials, query and fragment, such as http://prometheus.monitoring:9090"
	Address string `json:"address,omitempty"`

	// Any expression of PromQL.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.matches('[^[:space:]]')",message="prometheus.query must be an expression of PromQL"
	Query string `json:"query"`

	// The label that names the Node of a series. Absent, the expression has one value for the whole pool.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-zA-Z_][a-zA-Z0-9_]*)?$')",message="prometheus.nodeLabel must be the name of a Prometheus label: letters, digits and _, not starting with a digit"
	NodeLabel string `json:"nodeLabel,omitempty"`

	// What the one value of a pool is. Sum is shared by the workers (a queue, requests per second): the pool needs value/threshold
	// of them. Level is not (a latency): above the threshold the pool needs one more than it has.
	// +optional
	// +default="Sum"
	// +kubebuilder:validation:Enum=Sum;Level
	Value PoolValue `json:"value,omitempty"`
}

// PoolValue says what the one value of a pool is.
type PoolValue string

// The kinds of value.
const (
	PoolValueSum   PoolValue = "Sum"
	PoolValueLevel PoolValue = "Level"
)

// PendingPolicy says when and how pods that no node takes are demand.
type PendingPolicy struct {
	// For how long a pod must have been unschedulable.
	// +optional
	// +default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="pending.for must be a duration of 0s or more, such as 30s"
	For *metav1.Duration `json:"for,omitempty"`

	// How many pods without requests a new node is taken to hold.
	// +optional
	// +default=10
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="pending.podsPerNode must be at least 1"
	PodsPerNode *int32 `json:"podsPerNode,omitempty"`
}

// IdlePolicy says when the pool has too many workers.
type IdlePolicy struct {
	// For how long it must be idle.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="idle.for must be a duration of 0s or more, such as 10m"
	For *metav1.Duration `json:"for,omitempty"`

	// The share of the workers' CPU in use, below which they are idle; 0 never finds them so.
	// +optional
	// +default="300m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="idle.cpu must be a quantity between 0 and 1, such as 300m"
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// The share of their memory in use.
	// +optional
	// +default="500m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="idle.memory must be a quantity between 0 and 1, such as 500m"
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// PoolCooldown is counted from the verified completion of the last action.
type PoolCooldown struct {
	// After any action, until the next scale-up.
	// +optional
	// +default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="cooldown.up must be a duration of 0s or more, such as 5m"
	Up *metav1.Duration `json:"up,omitempty"`

	// After any action, until the next scale-down.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="cooldown.down must be a duration of 0s or more, such as 10m"
	Down *metav1.Duration `json:"down,omitempty"`
}

// SeasonalFloor learns the profile of a week.
//
// +kubebuilder:validation:XValidation:rule="!has(self.prometheus.nodeLabel) && self.prometheus.value != 'Level'",message="seasonal.prometheus must have neither nodeLabel nor the value Level: it tells the load of the whole pool",fieldPath=".prometheus"
type SeasonalFloor struct {
	// An expression that tells the load of the whole pool in nodes, such as the sum of what its nodes use of their CPU,
	// divided by the threshold.
	// +required
	Prometheus SignalQuery `json:"prometheus"`

	// How many past weeks are looked at.
	// +optional
	// +default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 12",message="seasonal.weeks must be from 1 to 12"
	Weeks *int32 `json:"weeks,omitempty"`

	// The confidence, from 0 to 1, below which the floor is not heard.
	// +optional
	// +default="500m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="seasonal.minConfidence must be a quantity between 0 and 1, such as 500m"
	MinConfidence *resource.Quantity `json:"minConfidence,omitempty"`
}

// PoolForecast says how the forecast of each signal is made.
type PoolForecast struct {
	// How often the signals are sampled and decisions are made.
	// +optional
	// +default="15s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(h|m|s))+$') && duration(self) >= duration('1s')",message="forecast.interval must be a whole number of seconds, at least 1s, such as 15s"
	Interval *metav1.Duration `json:"interval,omitempty"`

	// How far back forecasts look.
	// +optional
	// +default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="forecast.window must be a duration above 0s, such as 15m"
	Window *metav1.Duration `json:"window,omitempty"`

	// For how long a new worker is taken to carry less than its share.
	// +optional
	// +default="3m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="forecast.redistributionTimeout must be a duration of 0s or more, such as 3m"
	RedistributionTimeout *metav1.Duration `json:"redistributionTimeout,omitempty"`

	// How long a launch takes until its node is Ready, until it has been measured.
	// +optional
	// +default="2m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="forecast.initTimeout must be a duration above 0s, such as 2m"
	InitTimeout *metav1.Duration `json:"initTimeout,omitempty"`

	// The least that forecasts look ahead: they look 1.2 times what launches take.
	// +optional
	// +default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="forecast.horizonMin must be a duration of 0s or more, such as 30s"
	HorizonMin *metav1.Duration `json:"horizonMin,omitempty"`

	// The most that they look ahead.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="forecast.horizonMax must be a duration of 0s or more, such as 10m"
	HorizonMax *metav1.Duration `json:"horizonMax,omitempty"`

	// How much room a removal leaves: the workers that remain would stay below the threshold under a load this share higher.
	// +optional
	// +default="300m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('100')) <= 0",message="forecast.scaleDownMargin must be a quantity between 0 and 100, such as 300m"
	ScaleDownMargin *resource.Quantity `json:"scaleDownMargin,omitempty"`

	// Looks at the present alone: the horizon is 0.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// MarketPolicy says how instances are bought.
type MarketPolicy struct {
	// The share of the workers above onDemandBase that are Spot.
	// +optional
	// +default="700m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="market.spotRatio must be a quantity between 0 and 1, such as 700m"
	SpotRatio *resource.Quantity `json:"spotRatio,omitempty"`

	// Workers that are On-Demand whatever the ratio.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="market.onDemandBase must be at least 0"
	OnDemandBase int32 `json:"onDemandBase,omitempty"`

	// The most that an hour of a Spot instance may cost, in US dollars, such as "0.02"; absent, the On-Demand price.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[0-9]+([.][0-9]+)?$') && self.matches('[1-9]')",message="market.maxPrice must be a number of US dollars above 0, such as \"0.02\""
	MaxPrice string `json:"maxPrice,omitempty"`
}

// JoinPolicy says when a launch has failed.
type JoinPolicy struct {
	// How long an instance may take until its Node is Ready.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="join.timeout must be a duration above 0s, such as 10m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// For how long an instance that did not join is kept to be looked at.
	// +optional
	// +default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="join.keepFailedFor must be a duration of 0s or more, such as 15m"
	KeepFailedFor *metav1.Duration `json:"keepFailedFor,omitempty"`

	// Keeps it for good.
	// +optional
	KeepFailed bool `json:"keepFailed,omitempty"`
}

// DrainPolicy says how nodes are emptied.
type DrainPolicy struct {
	// How long the pods of a node may take to leave; past it the node takes pods again.
	// +optional
	// +default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="drain.timeout must be a duration above 0s, such as 5m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Deletes pods, past the timeout, that evictions did not remove. It breaks PodDisruptionBudgets.
	// +optional
	Force bool `json:"force,omitempty"`

	// Cordons a node that the cloud advises to leave (a rebalance recommendation).
	// +optional
	CordonOnRebalance bool `json:"cordonOnRebalance,omitempty"`
}

// VictimScorer compares two workers for removal.
//
// +kubebuilder:validation:Enum=FullestZone;Idlest;FewestPods;Oldest
type VictimScorer string

// The scorers, by what they would remove.
const (
	VictimFullestZone VictimScorer = "FullestZone" // one in the zone with most workers
	VictimIdlest      VictimScorer = "Idlest"      // the one that uses least
	VictimFewestPods  VictimScorer = "FewestPods"  // the one with fewest pods
	VictimOldest      VictimScorer = "Oldest"      // the one that has been there for longest
)

// NodeTemplate is what a new node comes up with.
type NodeTemplate struct {
	// Labels of the Node.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="template.labels must have names of Kubernetes labels as keys, such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(key, self[key].size() <= 63)",message="template.labels must have values of at most 63 characters"
	Labels map[string]string `json:"labels,omitempty"`

	// Taints of the Node that stay: not those that are lifted when it is ready.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Taints []NodeTaint `json:"taints,omitempty"`

	// What pods can use of a node of each instance type, where it cannot be learned from nodes that there are.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Allocatable map[string]resource.Quantity `json:"allocatable,omitempty"`
}

// NodeTaint is a taint of a new node.
type NodeTaint struct {
	// Such as dedicated or example.com/dedicated.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="template.taints[].key must be the name of a Kubernetes label, such as example.com/dedicated"
	Key string `json:"key"`

	// What goes with the key, if anything does.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$')",message="template.taints[].value must have at most 63 letters, digits, -, _ and ., with a letter or digit at both ends"
	Value string `json:"value,omitempty"`

	// What becomes of pods that do not tolerate it.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

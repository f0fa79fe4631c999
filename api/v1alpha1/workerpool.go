package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// WorkerPool keeps a number of worker nodes ahead of the load: it launches instances before pods need them, and drains
// and terminates them when nobody does.
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
type WorkerPoolSpec struct {
	// The fewest workers. Below it new ones are launched at once, past all cooldowns.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="min must be at least 0"
	Min int32 `json:"min"`

	// The most workers.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000",message="max must be from 1 to 10000"
	Max int32 `json:"max"`

	// The most workers that one scale-up launches; 0 is no limit.
	// +optional
	// +default=2
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="maxBatchUp must be at least 0"
	MaxBatchUp *int32 `json:"maxBatchUp,omitempty"`

	// The most workers that one scale-down removes, one after the other.
	// +optional
	// +default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="maxBatchDown must be at least 1"
	MaxBatchDown *int32 `json:"maxBatchDown,omitempty"`

	// What load is told by; each its own forecast, and the one that wants most workers wins. Absent, it is the requests of
	// pods against what nodes can allocate, with a threshold of 700m.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Signals []PoolSignal `json:"signals,omitempty"`

	// Any launches workers as soon as a signal or pending pods ask; All only if the signals and pending pods both do.
	// +optional
	// +default="Any"
	Mode PoolMode `json:"mode,omitempty"`

	// +optional
	// +default={}
	Pending PendingPolicy `json:"pending,omitzero"`

	// +optional
	// +default={}
	Idle IdlePolicy `json:"idle,omitzero"`

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

	// +optional
	// +default={}
	Market MarketPolicy `json:"market,omitzero"`

	// +optional
	// +default={}
	Join JoinPolicy `json:"join,omitzero"`

	// +optional
	// +default={}
	Drain DrainPolicy `json:"drain,omitzero"`

	// The order in which workers are compared for removal.
	// +optional
	// +default=["FullestZone","Idlest","FewestPods","Oldest"]
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Victims []VictimScorer `json:"victims,omitempty"`

	// What a new node comes up with, beside the labels of its zone and instance type. Pods that need other labels, or do not
	// tolerate the taints, are no demand for this pool.
	// +optional
	Template NodeTemplate `json:"template,omitzero"`

	// Where instances come from. Exactly one of its fields must be given.
	// +required
	Provider PoolProvider `json:"provider"`

	// Where the journal is kept.
	// +optional
	// +default={}
	State PoolState `json:"state,omitzero"`

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
	DownThreshold *resource.Quantity `json:"downThreshold,omitempty"`

	// For how long the signal must ask for more workers before it is heard: 0s for requests, which are promises, and 3m for
	// what is measured.
	// +optional
	For *metav1.Duration `json:"for,omitempty"`

	// +optional
	Prometheus *SignalQuery `json:"prometheus,omitempty"`
}

// SignalQuery asks a Prometheus server.
type SignalQuery struct {
	// The URL of the server, below which /api/v1/query_range is. Absent, it is the one that Foresail was started with.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Address string `json:"address,omitempty"`

	// Any expression of PromQL.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.matches('[^[:space:]]')",message="prometheus.query must be an expression of PromQL"
	Query string `json:"query"`

	// The label that names the Node of a series. Absent, the expression has one value for the whole pool.
	// +optional
	// +kubebuilder:validation:MaxLength=256
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
	For *metav1.Duration `json:"for,omitempty"`

	// The share of the workers' CPU in use, below which they are idle.
	// +optional
	// +default="300m"
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// The share of their memory in use.
	// +optional
	// +default="500m"
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// PoolCooldown is counted from the verified completion of the last action.
type PoolCooldown struct {
	// +optional
	// +default="5m"
	Up *metav1.Duration `json:"up,omitempty"`

	// +optional
	// +default="10m"
	Down *metav1.Duration `json:"down,omitempty"`
}

// SeasonalFloor learns the profile of a week.
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
	MinConfidence *resource.Quantity `json:"minConfidence,omitempty"`
}

// PoolForecast says how the forecast of each signal is made.
type PoolForecast struct {
	// How often the signals are sampled and decisions are made.
	// +optional
	// +default="15s"
	Interval *metav1.Duration `json:"interval,omitempty"`

	// How far back forecasts look.
	// +optional
	// +default="15m"
	Window *metav1.Duration `json:"window,omitempty"`

	// For how long a new worker is taken to carry less than its share.
	// +optional
	// +default="3m"
	RedistributionTimeout *metav1.Duration `json:"redistributionTimeout,omitempty"`

	// How long a launch takes until its node is Ready, until it has been measured.
	// +optional
	// +default="2m"
	InitTimeout *metav1.Duration `json:"initTimeout,omitempty"`

	// Bounds of how far ahead forecasts look: 1.2 times what launches take.
	// +optional
	// +default="30s"
	HorizonMin *metav1.Duration `json:"horizonMin,omitempty"`
	// +optional
	// +default="10m"
	HorizonMax *metav1.Duration `json:"horizonMax,omitempty"`

	// The share that the load must be below the threshold for a worker to be removed.
	// +optional
	// +default="300m"
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
	SpotRatio *resource.Quantity `json:"spotRatio,omitempty"`

	// Workers that are On-Demand whatever the ratio.
	// +optional
	OnDemandBase int32 `json:"onDemandBase,omitempty"`

	// The most that an hour of a Spot instance may cost, in US dollars, such as "0.02"; absent, the On-Demand price.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	MaxPrice string `json:"maxPrice,omitempty"`
}

// JoinPolicy says when a launch has failed.
type JoinPolicy struct {
	// How long an instance may take until its Node is Ready.
	// +optional
	// +default="10m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// For how long an instance that did not join is kept to be looked at.
	// +optional
	// +default="15m"
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

// NodeTemplate is what a new node comes up with.
type NodeTemplate struct {
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Taints []NodeTaint `json:"taints,omitempty"`

	// What pods can use of a node of each instance type, where it cannot be learned from nodes that there are.
	// +optional
	Allocatable map[string]resource.Quantity `json:"allocatable,omitempty"`
}

// NodeTaint is a taint of a new node.
type NodeTaint struct {
	// +required
	Key string `json:"key"`
	// +optional
	Value string `json:"value,omitempty"`
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

// PoolProvider says where instances come from.
//
// +kubebuilder:validation:XValidation:rule="has(self.ec2) != has(self.simulated)",message="provider must have exactly one of: ec2, simulated"
type PoolProvider struct {
	// +optional
	EC2 *EC2Provider `json:"ec2,omitempty"`
	// Nodes that exist in the API alone, for trying the pool out where kwok plays the kubelets.
	// +optional
	Simulated *SimulatedProvider `json:"simulated,omitempty"`
}

// EC2Provider launches EC2 instances.
type EC2Provider struct {
	// Id of the launch template, such as lt-0123456789abcdef0: image, security groups, instance profile, user data that joins
	// the cluster.
	// +required
	LaunchTemplate string `json:"launchTemplate"`

	// Version of the launch template: a number, $Latest or $Default.
	// +optional
	// +default="$Default"
	LaunchTemplateVersion string `json:"launchTemplateVersion,omitempty"`

	// +required
	// +kubebuilder:validation:MinLength=1
	Region string `json:"region"`

	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Subnets []EC2Subnet `json:"subnets"`

	// Instance types in order of preference.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	InstanceTypes []string `json:"instanceTypes"`

	// URL of the SQS queue that EventBridge sends Spot interruptions and rebalance recommendations to; empty reads none.
	// +optional
	InterruptionQueue string `json:"interruptionQueue,omitempty"`

	// Tags of each instance, beside those that tell whose it is.
	// +optional
	// +kubebuilder:validation:MaxProperties=40
	Tags map[string]string `json:"tags,omitempty"`

	// What the keys of the tags that tell whose an instance is begin with.
	// +optional
	// +default="foresail.dev"
	TagPrefix string `json:"tagPrefix,omitempty"`

	// URL of the EC2 API, for private endpoints; absent, that of the region.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
}

// EC2Subnet is a subnet that instances are launched into.
type EC2Subnet struct {
	// +required
	Zone string `json:"zone"`
	// +required
	ID string `json:"id"`
}

// SimulatedProvider plays a cloud.
type SimulatedProvider struct {
	// How long an instance takes until its Node is there.
	// +optional
	// +default="30s"
	JoinDelay *metav1.Duration `json:"joinDelay,omitempty"`

	// +optional
	// +default=["a","b"]
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Zones []string `json:"zones,omitempty"`

	// What pods can use of a node.
	// +optional
	// +default={"cpu":"2","memory":"4Gi","pods":"110"}
	Shape map[string]resource.Quantity `json:"shape,omitempty"`

	// Namespace of the ConfigMaps that stand for the instances.
	// +optional
	// +default="foresail-simulated"
	Namespace string `json:"namespace,omitempty"`
}

// PoolState says where the journal is kept: in the status of the WorkerPool if nothing else is given.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.kubernetes) && has(self.dynamodb))",message="state must have at most one of: kubernetes, dynamodb"
type PoolState struct {
	// +optional
	Kubernetes *KubernetesState `json:"kubernetes,omitempty"`
	// +optional
	DynamoDB *DynamoDBState `json:"dynamodb,omitempty"`
}

// KubernetesState keeps the journal in the status of the WorkerPool.
type KubernetesState struct{}

// DynamoDBState keeps the journal in a table with the string key clusterId.
type DynamoDBState struct {
	// +required
	// +kubebuilder:validation:MinLength=3
	Table string `json:"table"`

	// Name of the table's partition key, which is a string. The table has no sort key.
	// +optional
	// +default="clusterId"
	HashKey string `json:"hashKey,omitempty"`

	// Key of the item; absent, the name of the pool.
	// +optional
	Key string `json:"key,omitempty"`

	// +optional
	Region string `json:"region,omitempty"`

	// URL of the DynamoDB API; absent, that of the region.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
}

// PoolNotify says who else is told.
type PoolNotify struct {
	// CloudWatch namespace that CPU, memory, pending pods and nodes are sent to as metrics; empty sends none.
	// +optional
	CloudWatchNamespace string `json:"cloudWatchNamespace,omitempty"`
}

// Condition types of a WorkerPool.
const (
	// ConditionHealthy is true while the pool can do what it decides: the cloud, the cluster and the journal are reachable,
	// and launches join.
	ConditionHealthy = "Healthy"
	// ConditionForecasting is true while every signal has a forecast.
	ConditionForecasting = "Forecasting"
)

// WorkerPoolStatus is what is known of a pool. A field is absent while its value is unknown.
type WorkerPoolStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Healthy and Forecasting.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The workers that count: instances of the pool that work or are expected to.
	// +optional
	Workers *int32 `json:"workers,omitempty"`
	// Those of them whose Node is Ready.
	// +optional
	ReadyWorkers *int32 `json:"readyWorkers,omitempty"`
	// The workers that the last decision asked for.
	// +optional
	Wanted *int32 `json:"wanted,omitempty"`
	// Pods that no node takes and that a node of the pool could run.
	// +optional
	PendingPods *int32 `json:"pendingPods,omitempty"`

	// How long launches take until their nodes are Ready, as assumed or measured.
	// +optional
	InitTimeout *metav1.Duration `json:"initTimeout,omitempty"`

	// The action that is open.
	// +optional
	Action *PoolAction `json:"action,omitempty"`

	// What each signal says.
	// +optional
	// +listType=map
	// +listMapKey=name
	Signals []PoolSignalStatus `json:"signals,omitempty"`

	// The last decisions, the newest first. Decisions in a row that say the same are one.
	// +optional
	// +listType=atomic
	Decisions []PoolDecision `json:"decisions,omitempty"`

	// The journal, where it is kept here. It is not for people, and changes to it may have instances terminated.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Journal *runtime.RawExtension `json:"journal,omitempty"`
}

// PoolAction is an action that is open.
type PoolAction struct {
	// +required
	ID string `json:"id"`
	// ScaleUp or ScaleDown.
	// +required
	Kind string `json:"kind"`
	// +required
	Started metav1.Time `json:"started"`
	// Where it is, in words.
	// +optional
	Progress string `json:"progress,omitempty"`
}

// PoolSignalStatus is what a signal says.
type PoolSignalStatus struct {
	// +required
	Name string `json:"name"`
	// Why it says nothing; absent if it does.
	// +optional
	Error string `json:"error,omitempty"`
	// The metric of each worker now, and at the horizon.
	// +optional
	Current *resource.Quantity `json:"current,omitempty"`
	// +optional
	Predicted *resource.Quantity `json:"predicted,omitempty"`
	// +optional
	Wanted *int32 `json:"wanted,omitempty"`
	// +optional
	Horizon *metav1.Duration `json:"horizon,omitempty"`
}

// PoolDecision is a decision, or several in a row that say the same.
type PoolDecision struct {
	// When it was made first, and last.
	// +required
	Time metav1.Time `json:"time"`
	// +optional
	Last *metav1.Time `json:"last,omitempty"`
	// How often.
	// +optional
	Count int32 `json:"count,omitempty"`
	// Hold, ScaleUp or ScaleDown.
	// +required
	Step string `json:"step"`
	// A word for programs.
	// +required
	Reason string `json:"reason"`
	// A sentence for people.
	// +required
	Message string `json:"message"`
	// +required
	Workers int32 `json:"workers"`
	// +required
	Wanted int32 `json:"wanted"`
	// What each signal, pending pods, the seasonal floor and the minimum asked for.
	// +optional
	// +listType=atomic
	Votes []PoolVote `json:"votes,omitempty"`
}

// PoolVote is the number of workers that one voice asked for.
type PoolVote struct {
	// +required
	Voice string `json:"voice"`
	// Absent if it is not known.
	// +optional
	Workers *int32 `json:"workers,omitempty"`
	// +optional
	Why string `json:"why,omitempty"`
}

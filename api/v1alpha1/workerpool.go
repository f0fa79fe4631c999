package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkerPool scales a group of worker nodes ahead of the load: it launches instances before pods need them, and drains
// and terminates idle ones. Deleting a WorkerPool drains and terminates all of its nodes first, unless spec.deletionPolicy
// is Orphan.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=wp,categories=foresail
// +kubebuilder:printcolumn:name="Workers",type=integer,JSONPath=`.status.workers`,description="The workers that count"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyWorkers`,description="Those of them whose Node is Ready"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desired`,description="The number of workers that the last decision aims at"
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.min`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.max`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pendingPods`,description="Unschedulable pods that a node of the pool could run"
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.status.action.kind`,description="The action that is open"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.decisions[0].reason`,description="The reason of the last decision"
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`,description="Whether the pool can carry out its decisions"
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

// WorkerPoolSpec defines what the workers are, how many there may be, and what scales them.
//
// +kubebuilder:validation:XValidation:rule="self.max >= self.min",message="max must be at least min",fieldPath=".max"
// +kubebuilder:validation:XValidation:rule="!has(self.market.onDemandBase) || self.market.onDemandBase <= self.max",message="market.onDemandBase must be at most max",fieldPath=".market.onDemandBase"
type WorkerPoolSpec struct {
	// The fewest workers. Below it new ones are launched at once, without waiting for cooldowns.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="min must be at least 0"
	Min int32 `json:"min"`

	// The most workers, with the instances that did not join. Instances that are being removed or reclaimed do not count, and
	// one broken worker in ten, at least one, is replaced beyond it.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000",message="max must be from 1 to 10000"
	Max int32 `json:"max"`

	// The most workers that one scale-up launches; 0 is no limit of its own: as many as are desired, at most 500.
	// +optional
	// +default=0
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 500",message="maxBatchUp must be from 0 to 500"
	MaxBatchUp *int32 `json:"maxBatchUp,omitempty"`

	// The metrics that measure load. Each has its own forecast, and the one that recommends most workers wins.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +default=[{"name":"requests","threshold":"1"}]
	// +kubebuilder:validation:MinItems=1
	Signals []PoolSignal `json:"signals,omitempty"`

	// Alpha: Any launches workers as soon as a signal or pending pods recommend more; All only if a signal and pending pods both do.
	// +optional
	// +default="Any"
	Mode PoolMode `json:"mode,omitempty"`

	// When the pool has too many workers.
	// +optional
	// +default={}
	Idle IdlePolicy `json:"idle,omitzero"`

	// How long a pod must have been unschedulable before it counts as demand.
	// +optional
	// +default="0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="pendingFor must be a duration of 0s or more, such as 30s"
	PendingFor *metav1.Duration `json:"pendingFor,omitempty"`

	// How long after a completed action the next one may start.
	// +optional
	// +default={}
	Cooldown PoolCooldown `json:"cooldown,omitzero"`

	// The workers that past weeks needed at this time of the week. It can raise the number of workers, never lower it.
	// +optional
	Seasonal *SeasonalFloor `json:"seasonal,omitempty"`

	// Disabled: signals count as they are now. Nothing is launched ahead of the load.
	// +optional
	// +default="Enabled"
	Forecast PoolForecast `json:"forecast,omitempty"`

	// How often signals are sampled and decisions are made while no action is open.
	// +optional
	// +default="15s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(h|m|s))+$') && duration(self) >= duration('1s') && duration(self) <= duration('5m')",message="interval must be a whole number of seconds from 1s to 5m, such as 15s"
	Interval *metav1.Duration `json:"interval,omitempty"`

	// How long a launch takes until its node is Ready, until Foresail has measured it.
	// +optional
	// +default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="startupTime must be a duration above 0s, such as 2m"
	StartupTime *metav1.Duration `json:"startupTime,omitempty"`

	// How instances are bought.
	// +optional
	// +default={}
	Market MarketPolicy `json:"market,omitzero"`

	// When a launch counts as failed.
	// +optional
	// +default={}
	Join JoinPolicy `json:"join,omitzero"`

	// How nodes are emptied before their instances are terminated.
	// +optional
	// +default={}
	Drain DrainPolicy `json:"drain,omitzero"`

	// Which workers are replaced by new ones, and how many at once.
	// +optional
	// +default={}
	Disruption PoolDisruption `json:"disruption,omitzero"`

	// The labels and taints of a new node, in addition to the labels of its zone and instance type. Pods that need other labels, or do not
	// tolerate the taints, are no demand for this pool.
	// +optional
	Template NodeTemplate `json:"template,omitzero"`

	// Of the pools whose nodes could run a pod, the one with the largest weight launches for it, and of equals the first by
	// name. While that one cannot launch, the next one does.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 100",message="weight must be from 0 to 100"
	Weight int32 `json:"weight,omitempty"`

	// Where instances come from. Exactly one of its fields must be set.
	// +required
	Provider PoolProvider `json:"provider"`

	// Where the journal is kept.
	// +optional
	// +default={}
	State PoolState `json:"state,omitzero"`

	// What happens to the nodes when the WorkerPool is deleted. Drain, as for a NodePool of Karpenter: they are drained and
	// terminated, one at first and then up to ten at once, by PodDisruptionBudgets and do-not-disrupt annotations, and the
	// WorkerPool goes when none is left. This is the default, because instances that nobody manages cost money unseen.
	// Orphan: the WorkerPool goes at once, and its instances run on; a new one of the same name adopts them. While a
	// WorkerPool is being deleted, a change to Orphan stops that.
	// +optional
	// +default="Drain"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// The CloudWatch namespace that CPU, memory, pending pods and nodes are sent to as metrics; empty sends none.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-0-9A-Za-z._/#: ]*$') && !self.startsWith('AWS/')",message="cloudWatchNamespace must be letters, digits, spaces and -._/#:, not beginning with AWS/"
	CloudWatchNamespace string `json:"cloudWatchNamespace,omitempty"`

	// Decides and reports, but changes nothing. A WorkerPool in dry run that is deleted waits while it has instances, unless
	// deletionPolicy is Orphan.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// DeletionPolicy is what happens to the nodes of a WorkerPool that is deleted.
//
// +kubebuilder:validation:Enum=Drain;Orphan
type DeletionPolicy string

// The policies.
const (
	DeletionPolicyDrain  DeletionPolicy = "Drain"
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// FinalizerDrain keeps a WorkerPool whose policy is Drain until none of its instances is left.
const FinalizerDrain = "foresail.dev/drain"

// PoolForecast is whether workers are launched ahead of the load.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type PoolForecast string

// The values.
const (
	PoolForecastEnabled  PoolForecast = "Enabled"
	PoolForecastDisabled PoolForecast = "Disabled"
)

// PoolMode is how triggers combine.
//
// +kubebuilder:validation:Enum=Any;All
type PoolMode string

// The modes.
const (
	PoolModeAny PoolMode = "Any"
	PoolModeAll PoolMode = "All"
)

// PoolSignal is a metric that measures load.
//
// +kubebuilder:validation:XValidation:rule="(self.name == 'requests') != has(self.prometheus)",message="signals[].prometheus must be given, but not for the signal requests",fieldPath=".prometheus"
// +kubebuilder:validation:XValidation:rule="!has(self.downThreshold) || quantity(string(self.downThreshold)).isLessThan(quantity(string(self.threshold)))",message="signals[].downThreshold must be below threshold",fieldPath=".downThreshold"
type PoolSignal struct {
	// requests (the requests of pods divided by what nodes can allocate, from the Kubernetes API alone), or a name for a metric
	// of Prometheus. The idle policy reads the signals named cpu and memory.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="signals[].name must be lowercase letters, digits and -, such as cpu"
	Name string `json:"name"`

	// What the metric of a worker should stay below, in its units. Write a fraction as 700m or in quotes, as "0.7".
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="signals[].threshold must be a quantity above 0, such as 700m"
	Threshold resource.Quantity `json:"threshold"`

	// The metric must be below this value before a worker is removed. Absent, the
	// remaining workers must stay below the threshold: with 30% to spare where Prometheus measures, and none for requests. Write a fraction as 300m or in quotes, as "0.3".
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="signals[].downThreshold must be a quantity above 0, such as 300m"
	DownThreshold *resource.Quantity `json:"downThreshold,omitempty"`

	// How long the signal must recommend more workers before it counts: by default 0s for requests, and 3m for Prometheus.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="signals[].for must be a duration of 0s or more, such as 3m"
	For *metav1.Duration `json:"for,omitempty"`

	// Where the values come from: for every signal but requests.
	// +optional
	Prometheus *SignalQuery `json:"prometheus,omitempty"`
}

// SignalQuery is a query of a Prometheus server.
//
// +kubebuilder:validation:XValidation:rule="!has(self.nodeLabel) || self.value != 'Level'",message="prometheus.value must be Sum where nodeLabel is given",fieldPath=".value"
type SignalQuery struct {
	// The URL of the server, without /api/v1/query_range. Absent, it is that of --prometheus. Foresail's own configuration
	// must list it, and has its credentials.
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

	// What a value without nodeLabel means. Sum is shared by the workers (a queue, requests per second): the pool needs
	// value/threshold of them. Level is not shared (a latency): above the threshold the pool needs one more worker than it has.
	// +optional
	// +default="Sum"
	// +kubebuilder:validation:Enum=Sum;Level
	Value PoolValue `json:"value,omitempty"`
}

// PoolValue is the meaning of a value for the whole pool.
type PoolValue string

// The kinds of value.
const (
	PoolValueSum   PoolValue = "Sum"
	PoolValueLevel PoolValue = "Level"
)

// IdlePolicy defines when the pool has too many workers.
type IdlePolicy struct {
	// How long the pool must be idle, or more workers than it needs must have been there.
	// +optional
	// +default="15s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="idle.for must be a duration of 0s or more, such as 10m"
	For *metav1.Duration `json:"for,omitempty"`

	// The node-minutes that a minute is worth in which one pod waits for a node. The pool learns after which times workers that
	// were not needed any more were needed again. It keeps them for longer than "for", or launches them again ahead of time, where
	// that costs less than the wait of their pods. 0 keeps workers only for the time in "for". Write a fraction as 500m
	// or in quotes, as "0.5".
	// +optional
	// +default="1"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1000')) <= 0",message="idle.waitCost must be a quantity between 0 and 1000, such as 1"
	WaitCost *resource.Quantity `json:"waitCost,omitempty"`

	// The workers are idle below this share of their CPU; 0 never finds them idle. Write a fraction as 300m or in quotes, as
	// "0.3".
	// +optional
	// +default="300m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="idle.cpu must be a quantity between 0 and 1, such as 300m"
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// The workers are idle below this share of their memory. Write a fraction as 500m or in quotes, as "0.5".
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
	// After any action but the replacement of outdated workers, until the next scale-up.
	// +optional
	// +default="0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="cooldown.up must be a duration of 0s or more, such as 5m"
	Up *metav1.Duration `json:"up,omitempty"`

	// After any action, until the next scale-down.
	// +optional
	// +default="0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="cooldown.down must be a duration of 0s or more, such as 10m"
	Down *metav1.Duration `json:"down,omitempty"`
}

// SeasonalFloor learns the profile of a week.
type SeasonalFloor struct {
	// The URL of the server, as that of a signal.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && url(self).getQuery().size() == 0 && !self.contains('#') && !self.contains('@')",message="seasonal.address must be an http or https URL without credentials, query and fragment, such as http://prometheus.monitoring:9090"
	Address string `json:"address,omitempty"`

	// Any expression of PromQL for the load of the whole pool in nodes, such as the summed CPU utilization of the nodes divided by the threshold.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.matches('[^[:space:]]')",message="seasonal.query must be an expression of PromQL"
	Query string `json:"query"`

	// How many past weeks to learn from.
	// +optional
	// +default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 12",message="seasonal.weeks must be from 1 to 12"
	Weeks *int32 `json:"weeks,omitempty"`
}

// MarketPolicy defines how instances are bought.
type MarketPolicy struct {
	// The share of the workers above onDemandBase that are Spot. The default, 0, is On-Demand only. With Spot, set
	// provider.ec2.interruptionQueue too: without it Foresail learns of an interruption only when the instance is gone. Write a
	// fraction as 700m or in quotes, as "0.7".
	// +optional
	// +default="0"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="market.spotRatio must be a quantity between 0 and 1, such as 700m"
	SpotRatio *resource.Quantity `json:"spotRatio,omitempty"`

	// The number of workers that are always On-Demand: launched as such first, and removed only when all workers are On-Demand.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="market.onDemandBase must be at least 0"
	OnDemandBase int32 `json:"onDemandBase,omitempty"`

	// The most that an hour of a Spot instance may cost, in US dollars, such as "0.02"; absent, the On-Demand price.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[0-9]+([.][0-9]+)?$') && self.matches('[1-9]')",message="market.maxPrice must be a number of US dollars above 0, such as \"0.02\""
	MaxPrice string `json:"maxPrice,omitempty"`
}

// JoinPolicy defines when a launch counts as failed.
type JoinPolicy struct {
	// How long an instance may take until its Node is Ready.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="join.timeout must be a duration above 0s, such as 10m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// How long an instance that did not join is kept for debugging, unless its place is needed before. 87600h keeps it for good.
	// +optional
	// +default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="join.keepFailedFor must be a duration of 0s or more, such as 15m"
	KeepFailedFor *metav1.Duration `json:"keepFailedFor,omitempty"`
}

// DrainPolicy defines how nodes are drained.
type DrainPolicy struct {
	// How long a drain may take. Past it the node is uncordoned.
	// +optional
	// +default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="drain.timeout must be a duration above 0s, such as 5m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Ends a drain by the timeout: what is left is deleted early enough, whatever PodDisruptionBudgets say. Pods keep no node that must go.
	// +optional
	Force bool `json:"force,omitempty"`
}

// NodeTemplate describes a new node.
type NodeTemplate struct {
	// Labels of the Node.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="template.labels must have names of Kubernetes labels as keys, such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(key, self[key].size() <= 63)",message="template.labels must have values of at most 63 characters"
	Labels map[string]string `json:"labels,omitempty"`

	// Permanent taints of the Node.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Taints []NodeTaint `json:"taints,omitempty"`

	// Taints that the Node joins with and an agent on it removes, such as ebs.csi.aws.com/agent-not-ready. Pods need not tolerate
	// them to be demand for this pool. Until join.timeout is over, a Node with such a taint counts as on its way.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	StartupTaints []NodeTaint `json:"startupTaints,omitempty"`

	// The allocatable resources of a new node, instead of what the provider estimates. Existing nodes that have less correct
	// it. Write fractions as 500m or in quotes, as "0.5".
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Allocatable map[string]resource.Quantity `json:"allocatable,omitempty"`
}

// NodeTaint is a taint of a new node.
type NodeTaint struct {
	// Such as dedicated or example.com/dedicated.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="key must be the name of a Kubernetes label, such as example.com/dedicated"
	Key string `json:"key"`

	// The value of the taint, if it has one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$')",message="value must have at most 63 letters, digits, -, _ and ., with a letter or digit at both ends"
	Value string `json:"value,omitempty"`

	// The effect on pods that do not tolerate the taint.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

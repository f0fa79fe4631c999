package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PoolDisruption defines which workers are outdated, which ones are not needed although the pool is busy,
// how fast they go, and which are replaced as their Nodes are unhealthy. Scale-up is not bound by it. Budgets hold for the
// removal of workers of an idle pool as well; paused does not stop that.
type PoolDisruption struct {
	// How many workers may be disrupted at once, those included that are not Ready or are being removed anyway. Of the budgets that
	// are active the smallest counts; while none is active there is no limit.
	// +optional
	// +default=[{"nodes":"10%"}]
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Budgets []DisruptionBudget `json:"budgets,omitempty"`

	// When workers are removed that the load, the predicted one included, does not need. WhenUnderutilized: once that has lasted for
	// idle.for, those whose pods have a place on other nodes. WhenIdle: only while the whole pool is idle, as idle says.
	// +optional
	// +default="WhenUnderutilized"
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`

	// Workers that were launched longer ago are replaced. Absent, workers do not expire, unlike Karpenter's.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5m')",message="disruption.expireAfter must be a duration of 5m or more, such as 720h, or absent"
	ExpireAfter *metav1.Duration `json:"expireAfter,omitempty"`

	// Workers that were launched before this time are replaced. foresail rollout restart sets it to the present. A time in the
	// future has no effect until it has come.
	// +optional
	ReplaceBefore *metav1.Time `json:"replaceBefore,omitempty"`

	// No outdated worker is replaced, no worker of a busy pool is removed, and nodes that are being drained for it and are not empty yet take pods again.
	// Unhealthy workers are replaced all the same.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// When a Node is unhealthy for so long that its worker is replaced, whatever budgets, PodDisruptionBudgets and do-not-disrupt annotations
	// say, as by Karpenter's node auto-repair. None is while more than 20% of the nodes, and more than one, are unhealthy.
	// +optional
	// +default={}
	Repair NodeRepair `json:"repair,omitzero"`
}

// NodeRepair defines which Nodes are unhealthy, and for how long until they are replaced.
type NodeRepair struct {
	// How long a Node must be unhealthy before it is replaced.
	// +optional
	// +default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5m')",message="disruption.repair.after must be a duration of 5m or more, such as 30m"
	After *metav1.Duration `json:"after,omitempty"`

	// Conditions of Nodes that make them unhealthy in addition to Ready=False and Ready=Unknown, such as those of the
	// node-problem-detector.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +listMapKey=status
	// +kubebuilder:validation:MaxItems=16
	Conditions []UnhealthyCondition `json:"conditions,omitempty"`

	// Unhealthy Nodes are reported, and left to people.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// UnhealthyCondition is a condition that makes a Node unhealthy.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'Ready'",message="disruption.repair.conditions[] must be of another type than Ready, whose status False and Unknown always count"
type UnhealthyCondition struct {
	// The type of the condition, such as KernelDeadlock.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9][-A-Za-z0-9.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="disruption.repair.conditions[].type must be the type of a condition of Nodes, such as KernelDeadlock"
	Type string `json:"type"`

	// The status in which it makes a Node unhealthy.
	// +required
	Status UnhealthyStatus `json:"status"`
}

// UnhealthyStatus is the status of a condition.
//
// +kubebuilder:validation:Enum="True";"False";Unknown
type UnhealthyStatus string

// The statuses of conditions.
const (
	UnhealthyTrue    UnhealthyStatus = "True"
	UnhealthyFalse   UnhealthyStatus = "False"
	UnhealthyUnknown UnhealthyStatus = "Unknown"
)

// ConsolidationPolicy is when workers that the load does not need are removed.
//
// +kubebuilder:validation:Enum=WhenUnderutilized;WhenIdle
type ConsolidationPolicy string

// The consolidation policies.
const (
	ConsolidateWhenUnderutilized ConsolidationPolicy = "WhenUnderutilized"
	ConsolidateWhenIdle          ConsolidationPolicy = "WhenIdle"
)

// DisruptionBudget limits how many workers may be disrupted at once: always, or for a duration from each time of a schedule.
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) == has(self.duration)",message="disruption.budgets[] must have both schedule and duration, or neither"
type DisruptionBudget struct {
	// A number of workers, or a percentage of the pool's workers, rounded up; 0 forbids disruption.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]{1,5})$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || (self >= 0 && self <= 99999)",message="disruption.budgets[].nodes must be a number of nodes or a percentage up to 100%, such as 2 or 10%"
	Nodes intstr.IntOrString `json:"nodes"`

	// When the budget becomes active: the five fields of a CronJob's schedule, or a macro such as @daily, in UTC. Absent, it is
	// always active.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|([*?]|[0-5]?[0-9])([-,/]([*?]|[0-5]?[0-9]))* +([*?]|[01]?[0-9]|2[0-3])([-,/]([*?]|[01]?[0-9]|2[0-3]))* +([*?]|[0-2]?[0-9]|3[01])([-,/]([*?]|[0-2]?[0-9]|3[01]))* +([*?]|0?[0-9]|1[0-2]|[a-zA-Z]{3})([-,/]([*?]|0?[0-9]|1[0-2]|[a-zA-Z]{3}))* +([*?]|[0-6]|[a-zA-Z]{3})([-,/]([*?]|[0-6]|[a-zA-Z]{3}))*)$')",message="disruption.budgets[].schedule must be a cron schedule of five fields, such as 0 8 * * mon-fri, or @hourly, @daily, @weekly, @monthly or @yearly"
	Schedule string `json:"schedule,omitempty"`

	// How long the budget stays active from each time of schedule.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+h)?([0-9]+m)?(0s)?$') && duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="disruption.budgets[].duration must be hours and minutes, from 1m to 8760h, such as 10h"
	Duration *metav1.Duration `json:"duration,omitempty"`
}

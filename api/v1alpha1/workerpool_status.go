package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Condition types of a WorkerPool.
const (
	// ConditionHealthy is true while the pool can carry out its decisions: the cloud, the cluster and the journal are
	// reachable, and launches join.
	ConditionHealthy = "Healthy"
	// ConditionForecasting is true while every signal has a forecast.
	ConditionForecasting = "Forecasting"
	// ConditionInterruptionsReceived is true while the pool receives the cloud's warnings before it reclaims Spot instances.
	// Pools that ask for no Spot instances lack it.
	ConditionInterruptionsReceived = "InterruptionsReceived"
	// ConditionDeleting is true while the pool is being deleted; its message says what is left and what holds it. Other pools
	// lack it.
	ConditionDeleting = "Deleting"
)

// WorkerPoolStatus is the observed state of a pool. A field is absent while its value is unknown.
type WorkerPoolStatus struct {
	// The generation of the spec that the pool runs by, and that this status is about. A spec that cannot be used is never
	// observed: Healthy is False then.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Healthy, Forecasting, for Spot InterruptionsReceived, and while the WorkerPool is being deleted Deleting.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The workers: instances of the pool that work or are expected to.
	// +optional
	Workers *int32 `json:"workers,omitempty"`
	// Those of them whose Node is Ready.
	// +optional
	ReadyWorkers *int32 `json:"readyWorkers,omitempty"`
	// The number of workers that the last decision aims at.
	// +optional
	Desired *int32 `json:"desired,omitempty"`
	// Unschedulable pods that a node of the pool could run.
	// +optional
	PendingPods *int32 `json:"pendingPods,omitempty"`

	// How long launches take until their nodes are Ready, as assumed or measured.
	// +optional
	StartupTime *metav1.Duration `json:"startupTime,omitempty"`

	// The open action.
	// +optional
	Action *PoolAction `json:"action,omitempty"`

	// The replacement of outdated workers; absent until the pool has reported it.
	// +optional
	Rollout *PoolRollout `json:"rollout,omitempty"`

	// Names of Nodes that go outside of any action: of instances that the cloud reclaims, of unhealthy ones that are
	// being replaced, and of those that never joined and will be terminated.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=253
	Terminating []string `json:"terminating,omitempty"`

	// Names of the Nodes that would be removed next if the load stays as low as it is, even before idle.for and the cooldown
	// are over, in order, at most 100. Nothing is decided yet, and they still accept pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	RemovalCandidates []string `json:"removalCandidates,omitempty"`

	// The last value of each signal.
	// +optional
	// +listType=map
	// +listMapKey=name
	Signals []PoolSignalStatus `json:"signals,omitempty"`

	// The last decisions, the newest first. Equal decisions in a row are one entry.
	// +optional
	// +listType=atomic
	Decisions []PoolDecision `json:"decisions,omitempty"`

	// The journal, if it is kept here. Do not edit it: a change can terminate instances.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Journal *runtime.RawExtension `json:"journal,omitempty"`
}

// PoolAction is an open action.
type PoolAction struct {
	// +required
	ID string `json:"id"`
	// ScaleUp or ScaleDown.
	// +required
	Kind string `json:"kind"`
	// +required
	Started metav1.Time `json:"started"`
	// Its progress, in words.
	// +optional
	Progress string `json:"progress,omitempty"`
	// Names of the Nodes that it removes, in order, from the start of the action until each is gone or uncordoned. All but
	// the first are listed before they are tainted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=253
	Nodes []string `json:"nodes,omitempty"`
}

// PoolRollout is the replacement of outdated workers.
type PoolRollout struct {
	// The workers that are still to be replaced. Those that are being drained or terminated count until they are gone.
	// +required
	Outdated int32 `json:"outdated"`
	// The workers of which it is not known whether they are outdated, for example without the permission
	// ec2:DescribeLaunchTemplates.
	// +optional
	Unknown int32 `json:"unknown,omitempty"`
	// Why they are outdated or that is not known, and what holds their replacement back, as a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}

// PoolSignalStatus is the last value of a signal.
type PoolSignalStatus struct {
	// +required
	Name string `json:"name"`
	// Why the signal has no value; absent if it has one.
	// +optional
	Error string `json:"error,omitempty"`
	// The metric per worker, now.
	// +optional
	Current *resource.Quantity `json:"current,omitempty"`
	// The metric per worker, at the horizon.
	// +optional
	Predicted *resource.Quantity `json:"predicted,omitempty"`
	// The workers that it recommends; absent for a signal that the idle policy alone reads.
	// +optional
	Recommended *int32 `json:"recommended,omitempty"`
	// How far ahead predicted is.
	// +optional
	Horizon *metav1.Duration `json:"horizon,omitempty"`
}

// PoolDecision is a decision, or several equal ones in a row.
type PoolDecision struct {
	// When it was made first.
	// +required
	Time metav1.Time `json:"time"`
	// When it was made last.
	// +optional
	Last *metav1.Time `json:"last,omitempty"`
	// How often it was made.
	// +optional
	Count int32 `json:"count,omitempty"`
	// Hold, ScaleUp or ScaleDown.
	// +required
	Step string `json:"step"`
	// The reason, as one word for programs.
	// +required
	Reason string `json:"reason"`
	// The reason, as a sentence.
	// +required
	Message string `json:"message"`
	// The workers at that time.
	// +required
	Workers int32 `json:"workers"`
	// The number of workers that it aims at.
	// +required
	Desired int32 `json:"desired"`
	// The recommendations of each signal, pending pods, the seasonal floor and the minimum, the largest first.
	// +optional
	// +listType=atomic
	Recommendations []PoolRecommendation `json:"recommendations,omitempty"`
}

// PoolRecommendation is the number of workers that one signal recommended.
type PoolRecommendation struct {
	// The name of a signal, pending, seasonal or minimum.
	// +required
	Signal string `json:"signal"`
	// The number of workers; absent if it is unknown.
	// +optional
	Workers *int32 `json:"workers,omitempty"`
	// Why, as a sentence.
	// +optional
	Reason string `json:"reason,omitempty"`
}

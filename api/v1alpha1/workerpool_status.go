package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

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

	// Names of Nodes that are being removed beside any action: of instances that the cloud takes back, and of those that
	// never worked and will be terminated.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=253
	Leaving []string `json:"leaving,omitempty"`

	// Names of Nodes that would be removed next if the pool stays as idle as it is, the first one first; of many the first
	// 100. Nothing is decided about them, and they take pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	Candidates []string `json:"candidates,omitempty"`

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
	// Names of Nodes that it removes, in order: from when it begins, which for all but the first is before the taint, until
	// they are gone or are to take pods again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=253
	Nodes []string `json:"nodes,omitempty"`
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

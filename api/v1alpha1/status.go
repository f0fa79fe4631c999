package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of a PredictedMetric.
const (
	// ConditionReady is true while a forecast is served.
	ConditionReady = "Ready"
	// ConditionSamplesFresh is true while the newest sample is younger than staleAfter.
	ConditionSamplesFresh = "SamplesFresh"
	// ConditionSamplesFine is true while changes of the load show in the samples early enough for the horizon: two samples
	// and their delay take no more than half of it.
	ConditionSamplesFine = "SamplesFine"
	// ConditionTargetFound is true while the target and its scale subresource can be read.
	ConditionTargetFound = "TargetFound"
)

// PredictedMetricStatus is what is known of the forecast. A field is absent while its value is unknown.
type PredictedMetricStatus struct {
	// The generation of the spec that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Ready, SamplesFresh, SamplesFine and TargetFound.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The metric that each instance has now, smoothed, if they share the load evenly.
	// +optional
	Current *resource.Quantity `json:"current,omitempty"`

	// The metric that each instance would have at the horizon, with the replicas of now.
	// +optional
	Predicted *resource.Quantity `json:"predicted,omitempty"`

	// The replicas that the target is set to.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// The replicas that the forecast asks for.
	// +optional
	WantedReplicas *int32 `json:"wantedReplicas,omitempty"`

	// The replicas that all PredictedMetrics of the target ask for together: the largest number. While one of them has no
	// forecast, it does not go below the replicas of now.
	// +optional
	TargetWantedReplicas *int32 `json:"targetWantedReplicas,omitempty"`

	// The PredictedMetric that targetWantedReplicas comes from.
	// +optional
	DrivenBy string `json:"drivenBy,omitempty"`

	// The instances that were running when the newest sample was taken.
	// +optional
	Instances *int32 `json:"instances,omitempty"`

	// The pods of the target that are Running and Ready, as the HPA counts them.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// The load of all instances together, smoothed.
	// +optional
	Level *resource.Quantity `json:"level,omitempty"`

	// The change of level in a sample interval.
	// +optional
	Trend *resource.Quantity `json:"trend,omitempty"`

	// How far ahead the load is forecast.
	// +optional
	Horizon *metav1.Duration `json:"horizon,omitempty"`

	// How long a new instance takes to become ready, as assumed or measured.
	// +optional
	InitTimeout *metav1.Duration `json:"initTimeout,omitempty"`

	// The source that samples come from: pods, prometheus, remoteWrite or resource.
	// +optional
	Source string `json:"source,omitempty"`

	// The mean time between two samples of an instance, as the samples show it.
	// +optional
	SampleInterval *metav1.Duration `json:"sampleInterval,omitempty"`

	// The age of the newest sample when this status was written.
	// +optional
	SampleAge *metav1.Duration `json:"sampleAge,omitempty"`

	// The samples that arrive in a second, of all instances together.
	// +optional
	SamplesPerSecond *resource.Quantity `json:"samplesPerSecond,omitempty"`

	// The last decision that differed from the one before.
	// +optional
	LastDecision *LastDecision `json:"lastDecision,omitempty"`
}

// LastDecision is a decision with its reason.
type LastDecision struct {
	// +required
	Time metav1.Time `json:"time"`

	// The direction of the trend: UP, DOWN or HORIZONTAL.
	// +required
	Direction string `json:"direction"`

	// What is done to the replicas: up, down or hold.
	// +required
	Action string `json:"action"`

	// The replicas that are asked for.
	// +required
	Wanted int32 `json:"wanted"`

	// A word for programs.
	// +required
	Reason string `json:"reason"`

	// A sentence for people.
	// +optional
	Message string `json:"message,omitempty"`
}

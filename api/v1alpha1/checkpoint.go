package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PredictedMetricCheckpoint keeps what Foresail has learned of the load of the PredictedMetric of the same name, so that it survives a
// restart and all replicas know the same. Foresail writes it every ten minutes and creates it again if it is missing. To have a load
// learned anew, delete it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pmcp
// +kubebuilder:printcolumn:name="Learned",type=string,JSONPath=`.learned`,description="For how long the load is known, at most a week"
// +kubebuilder:printcolumn:name="Updated",type=date,JSONPath=`.updated`,description="When it was written"
// +kubebuilder:printcolumn:name="Version",type=integer,JSONPath=`.version`,priority=1,description="The version of the format of the data"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PredictedMetricCheckpoint struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The version of the format of the data. Foresail ignores data of another version than its own.
	// +required
	// +kubebuilder:validation:Minimum=1
	Version int32 `json:"version"`

	// For how long the load is known, by what was learned as it came or by its history: at most a week.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="learned must be a duration of 0s or more, such as 8h"
	Learned metav1.Duration `json:"learned"`

	// When this was written.
	// +required
	Updated metav1.Time `json:"updated"`

	// What has been learned, in a compressed form that only Foresail reads.
	// +required
	// +kubebuilder:validation:MaxLength=40960
	Data []byte `json:"data"`
}

// MaxCheckpointData is how many bytes Data may have: three quarters of its length in base64, which the schema limits.
const MaxCheckpointData = 40960 / 4 * 3

// PredictedMetricCheckpointList is a list of PredictedMetricCheckpoints.
//
// +kubebuilder:object:root=true
type PredictedMetricCheckpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PredictedMetricCheckpoint `json:"items"`
}

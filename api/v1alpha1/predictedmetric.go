package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PredictedMetric forecasts a metric of the pods of a workload, so that a HorizontalPodAutoscaler can add pods before the
// load rises. HPAs read the forecast as the external metrics predicted_load_total, predicted_load and predicted_replicas.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pm,categories=foresail
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.scaleTargetRef.name`,description="What is scaled"
// +kubebuilder:printcolumn:name="Load",type=string,JSONPath=`.status.current`,description="The metric of each instance now. The HPA shows another number: threshold × the replicas needed, divided by the replicas now"
// +kubebuilder:printcolumn:name="Predicted",type=string,JSONPath=`.status.predicted`,description="The metric of each instance at the horizon, with the replicas of now"
// +kubebuilder:printcolumn:name="Threshold",type=string,JSONPath=`.spec.threshold`,description="What the metric of an instance should stay below"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`,description="The replicas that the target is set to"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`,description="The replicas that the forecast needs"
// +kubebuilder:printcolumn:name="Target-Desired",type=integer,JSONPath=`.status.targetDesiredReplicas`,priority=1,description="The replicas that all PredictedMetrics of the target need together"
// +kubebuilder:printcolumn:name="Driven-By",type=string,JSONPath=`.status.drivenBy`,priority=1,description="The PredictedMetric that needs the most"
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.source`,priority=1,description="Where samples come from"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether there is a forecast, which is served unless spec.dryRun is true"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why no forecast is served, such as DryRun, or ForecastServed"
// +kubebuilder:printcolumn:name="Sample-Age",type=string,JSONPath=`.status.sampleAge`,priority=1,description="The age of the newest sample when the status was written"
// +kubebuilder:printcolumn:name="Updated",type=date,JSONPath=`.status.updateTime`,priority=1,description="When the status was written: at once after a decision, else about every 15s, or less often if there are more than 150 PredictedMetrics"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must have at most 63 characters: an HPA selects the metric by a label with this value"
type PredictedMetric struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PredictedMetricSpec `json:"spec"`
	// +optional
	Status PredictedMetricStatus `json:"status,omitzero"`
}

// PredictedMetricList is a list of PredictedMetrics.
//
// +kubebuilder:object:root=true
type PredictedMetricList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PredictedMetric `json:"items"`
}

// PredictedMetricSpec configures a forecast. Only scaleTargetRef, source and threshold are required.
//
// +kubebuilder:validation:XValidation:rule="!has(self.staleAfter) || duration(self.staleAfter) <= duration('0s') || ((!has(self.source.pods) || duration(self.staleAfter) >= duration(self.source.pods.interval) + duration(self.source.pods.interval)) && (!has(self.source.prometheus) || duration(self.staleAfter) >= duration(self.source.prometheus.interval) + duration(self.source.prometheus.interval)) && (!has(self.source.resource) || duration(self.staleAfter) >= duration('30s')))",message="staleAfter must be at least twice the interval of the source",fieldPath=".staleAfter"
// +kubebuilder:validation:XValidation:rule="!has(self.maxReplicas) || self.maxReplicas >= self.minReplicas",message="maxReplicas must be at least minReplicas",fieldPath=".maxReplicas"
// +kubebuilder:validation:XValidation:rule="self.minReplicas != 0 || ((has(self.source.prometheus) && self.source.prometheus.scope == 'Target') || (has(self.source.remoteWrite) && self.source.remoteWrite.scope == 'Target'))",message="minReplicas must be at least 1, or 0 if the source has scope Target",fieldPath=".minReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.activation) || self.minReplicas == 0",message="activation must be absent unless minReplicas is 0",fieldPath=".activation"
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaler) || has(self.maxReplicas)",message="maxReplicas must be given with autoscaler",fieldPath=".maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.capacityBuffer) || has(self.maxReplicas) || has(self.capacityBuffer.maxReplicas)",message="capacityBuffer must have maxReplicas, unless the spec has it",fieldPath=".capacityBuffer"
// +kubebuilder:validation:XValidation:rule="self.model == 'Linear' || !((has(self.source.prometheus) && self.source.prometheus.scope == 'Target') || (has(self.source.remoteWrite) && self.source.remoteWrite.scope == 'Target'))",message="model must be Linear if the source has scope Target",fieldPath=".model"
// +kubebuilder:validation:XValidation:rule="!has(self.saturation) || !((has(self.source.prometheus) && self.source.prometheus.scope == 'Target') || (has(self.source.remoteWrite) && self.source.remoteWrite.scope == 'Target'))",message="saturation must be absent if the source has scope Target",fieldPath=".saturation"
// +kubebuilder:validation:XValidation:rule="!has(self.baseline) || self.model == 'Linear' && !((has(self.source.prometheus) && self.source.prometheus.scope == 'Target') || (has(self.source.remoteWrite) && self.source.remoteWrite.scope == 'Target'))",message="baseline must be absent unless model is Linear and the source has scope Pod",fieldPath=".baseline"
// +kubebuilder:validation:XValidation:rule="!has(self.baseline) || [string(self.baseline), string(self.threshold)].exists(q, q.matches('[eE][-+]?[0-9]{3}') || !isQuantity(q)) || quantity(string(self.baseline)).asApproximateFloat() < quantity(string(self.threshold)).asApproximateFloat() / (has(self.holt) ? 1.3 : 1.05)",message="baseline must be below threshold/1.05, or with holt below threshold/1.3, so that fewer pods are possible",fieldPath=".baseline"
// +kubebuilder:validation:XValidation:rule="!has(self.saturation) || [string(self.saturation), string(self.threshold)].exists(q, q.matches('[eE][-+]?[0-9]{3}') || !isQuantity(q)) || quantity(string(self.saturation)).isGreaterThan(quantity(string(self.threshold)))",message="saturation must be above threshold",fieldPath=".saturation"
// +kubebuilder:validation:XValidation:rule="duration(has(self.horizon.max) ? self.horizon.max : has(self.holt) ? '40s' : '20m') >= duration(self.horizon.min)",message="horizon.max must be at least horizon.min",fieldPath=".horizon.max"
// +kubebuilder:validation:XValidation:rule="!has(self.lateness) || !has(self.holt)",message="lateness must be absent with holt",fieldPath=".lateness"
// +kubebuilder:validation:XValidation:rule="!has(self.schedules) || self.schedules.all(s, !has(s.minReplicas) && !has(s.maxReplicas) || !has(s.maxReplicas) && !has(self.maxReplicas) || (has(s.maxReplicas) ? s.maxReplicas : self.maxReplicas) >= (has(s.minReplicas) ? s.minReplicas : self.minReplicas))",message="schedules must each have a maxReplicas, or else that of the spec, of at least their minReplicas, or else that of the spec",fieldPath=".schedules"
// +kubebuilder:validation:XValidation:rule="!has(self.schedules) || ((has(self.source.prometheus) && self.source.prometheus.scope == 'Target') || (has(self.source.remoteWrite) && self.source.remoteWrite.scope == 'Target')) || self.schedules.all(s, !has(s.minReplicas) || s.minReplicas != 0)",message="schedules must each have a minReplicas of at least 1, or 0 if the source has scope Target",fieldPath=".schedules"
// +kubebuilder:validation:XValidation:rule="!has(self.schedules) || !has(self.holt) || self.schedules.all(s, !has(s.lateness) && !has(s.learning))",message="schedules must have no lateness and no learning with holt",fieldPath=".schedules"
//
// Rules on two fields are here because a rule of horizon would reject its default {}. A field whose default depends on the
// method has none in the schema, so rules on it name both defaults.
type PredictedMetricSpec struct {
	// The workload to forecast for: a Deployment, a StatefulSet or anything else with a scale subresource, in the same namespace.
	// +required
	ScaleTargetRef ScaleTargetRef `json:"scaleTargetRef"`

	// Where the metric is read from. Set exactly one of its fields.
	// +required
	Source Source `json:"source"`

	// The value that the metric of one pod should stay below, in units of the metric, such as 700m for a utilization of 0.7.
	// Use the same value as the target of the HPA. HPAs read thousandths: expose a metric with a threshold below 100m in
	// smaller units. Write a fraction as 700m or in quotes, as "0.7": the API server rejects 0.7 without quotes, as "must be of
	// type integer,string".
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('[eE][-+]?[0-9]{3}') && isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",message="threshold must be a quantity above 0, such as 700m or \"0.7\""
	Threshold resource.Quantity `json:"threshold"`

	// The fewest replicas that are recommended. Use the minReplicas of the HPA. It may be 0 if the source has scope Target, which
	// has a load without pods: any other source could not see that a pod is needed.
	// +optional
	// +default=1
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="minReplicas must be at least 0"
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// With minReplicas 0: the load of the whole target up to which no pod is needed. Above it there is at least one. Default:
	// 0. Write a fraction as 500m or in quotes, as "0.5".
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('[eE][-+]?[0-9]{3}') && isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0",message="activation must be a quantity of 0 or more, such as 10"
	Activation *resource.Quantity `json:"activation,omitempty"`

	// The most replicas that are recommended. If absent there is no limit here: the maxReplicas of the HPA still applies.
	// Required with autoscaler, and with a capacityBuffer that has no maxReplicas.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != 0",message="maxReplicas must be at least 1"
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// Windows of time, such as holidays and known events, in which other bounds hold.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Schedules []Schedule `json:"schedules,omitempty"`

	// Set this, if only to {}, to have Foresail create the HorizontalPodAutoscaler and keep it as recommended. It has the name of
	// this object, and its minReplicas, maxReplicas and threshold. It is deleted with this field or this object. If absent, you
	// create the HPA: foresail hpa NAME prints it.
	// +optional
	Autoscaler *Autoscaler `json:"autoscaler,omitempty"`

	// Set this, if only to {}, to have nodes started for pods that will be needed: Foresail keeps a CapacityBuffer
	// (autoscaling.x-k8s.io) of the name of this object, with as many spare pods as will be needed by the time a node takes to start,
	// beyond those of now. The node autoscaler acts on it: cluster-autoscaler, GKE, or Karpenter from 1.14 on with the feature gate
	// CapacityBuffer. It is deleted with this field or this object.
	// +optional
	CapacityBuffer *CapacityBuffer `json:"capacityBuffer,omitempty"`

	// How the metric of one pod follows the load that all pods share. Linear: the metric halves if there are twice as many
	// pods. Quadratic: the metric grows with the square root of the load.
	// +optional
	// +default="Linear"
	Model ModelType `json:"model,omitempty"`

	// The metric of a pod without load, such as the memory of an idle process: only what is above it is shared. Write a
	// fraction as 100m or in quotes, as "0.1".
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('[eE][-+]?[0-9]{3}') && isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0",message="baseline must be a quantity of 0 or more, such as 100m"
	Baseline *resource.Quantity `json:"baseline,omitempty"`

	// The highest value that the metric can have however large the load is, such as "1" for a utilization. Leave it out for a
	// metric without one. Write a fraction as 500m or in quotes, as "0.5".
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('[eE][-+]?[0-9]{3}') && isQuantity(string(self))",message="saturation must be a quantity, such as 1 or 950m"
	Saturation *resource.Quantity `json:"saturation,omitempty"`

	// For what share of the time more load may come than the pods that were ordered for it can hold at the threshold. The margin that
	// keeps to it is learned from how the load goes on, once it has been followed for some minutes. The less, the more pods there are:
	// usually 3 to 6% more with 1% than with 2%. Not with holt. Default: 1%.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^(50([.]0{1,3})?|[1-4]?[0-9]([.][0-9]{1,3})?)%$') && !self.matches('^0([.]0+)?%$')",message="lateness must be a percentage above 0% and up to 50%, such as 1%"
	Lateness string `json:"lateness,omitempty"`

	// The interval of the time grid that samples are aligned to. Set it to about the interval of the samples.
	// +optional
	// +default="1s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]{1,3})?(h|m|s)|[0-9]+ms)+$') && duration(self) >= duration('100ms') && duration(self) <= duration('45s')",message="sampleInterval must be a whole number of milliseconds from 100ms to 45s, such as 1s"
	SampleInterval *metav1.Duration `json:"sampleInterval,omitempty"`

	// Alpha: how long load takes to move between pods when one starts or ends: slow start of a load balancer, readings that lag. 0s: at once.
	// +optional
	// +default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="redistributionTimeout must be a duration of 0s or more, such as 30s"
	RedistributionTimeout *metav1.Duration `json:"redistributionTimeout,omitempty"`

	// How long a new pod is assumed to take to become ready, until start-ups have been measured.
	// +optional
	// +default="25s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="startupTime must be a duration of 0s or more, such as 25s"
	StartupTime *metav1.Duration `json:"startupTime,omitempty"`

	// How far ahead the load is forecast: the startup time, with holt 1.2 times it, at least min and at most max, plus reactionDelay.
	// +optional
	// +default={}
	Horizon Horizon `json:"horizon,omitzero"`

	// Alpha: set this, if only to {}, to have the load forecast by the paper's method, which smooths level and trend with fixed
	// weights and learns nothing. Some other fields have a different default with it; their descriptions list both.
	// +optional
	Holt *Holt `json:"holt,omitempty"`

	// If the newest sample is older than this, HPAs get an error and keep their replicas. Default: three times the interval of
	// the source, at least 30s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="staleAfter must be a duration above 0s, such as 30s"
	StaleAfter *metav1.Duration `json:"staleAfter,omitempty"`

	// Forecasts, learns and reports, but nothing acts on it. HPAs and KEDA get an error in place of a value and keep their replicas.
	// No HPA of autoscaler and no CapacityBuffer of capacityBuffer is created or changed; those that Foresail has created before stay
	// as they are. Set it to false, or remove it, to have the forecast acted on.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// Autoscaler configures the HorizontalPodAutoscaler that Foresail creates.
type Autoscaler struct {
	// The seconds that the HPA waits before it removes pods: it takes the largest recommendation of this time.
	// Default: 30 (method Holt: 120).
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 3600",message="autoscaler.scaleDownStabilizationSeconds must be between 0 and 3600"
	ScaleDownStabilizationSeconds *int32 `json:"scaleDownStabilizationSeconds,omitempty"`
}

// CapacityBuffer configures the CapacityBuffer that Foresail keeps.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxReplicas) || self.maxReplicas < 1 || self.maxReplicas >= self.minReplicas",message="capacityBuffer.maxReplicas must be at least capacityBuffer.minReplicas",fieldPath=".maxReplicas"
type CapacityBuffer struct {
	// The fewest spare pods, whatever the forecast.
	// +optional
	// +default=0
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="capacityBuffer.minReplicas must be at least 0"
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// The most spare pods. If absent, spare pods and pods together are no more than maxReplicas of the spec.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="capacityBuffer.maxReplicas must be at least 1"
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// How long a new node takes, from a pod that waits for it until the pod is scheduled. Default: as measured in this cluster.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('30m')",message="capacityBuffer.nodeStartupTime must be a duration between 10s and 30m, such as 2m"
	NodeStartupTime *metav1.Duration `json:"nodeStartupTime,omitempty"`
}

// ScaleTargetRef names an object with a scale subresource.
type ScaleTargetRef struct {
	// Such as apps/v1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// Such as Deployment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// The name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ModelType names a function g that turns the metric of one instance into load that can be summed.
//
// +kubebuilder:validation:Enum=Linear;Quadratic
type ModelType string

// The types of model: g of a value v, or with a baseline of v − baseline.
const (
	ModelLinear    ModelType = "Linear"    // g(v) = v
	ModelQuadratic ModelType = "Quadratic" // g(v) = v²
)

// ForecastMethod names a forecasting method.
type ForecastMethod string

// The methods there are.
const (
	ForecastAdaptive ForecastMethod = "Adaptive" // a line through as many of the newest loads as fit one
	ForecastHolt     ForecastMethod = "Holt"     // the paper's: level and trend, smoothed with fixed weights
)

// Method returns the method that forecasts the load.
func (s *PredictedMetricSpec) Method() ForecastMethod {
	if s.Holt != nil {
		return ForecastHolt
	}
	return ForecastAdaptive
}

// WidestBounds returns the fewest and the most replicas at any time, with and without schedules; nil where there is no limit.
func (s *PredictedMetricSpec) WidestBounds() (fewest, most *int32) {
	fewest, most = s.MinReplicas, s.MaxReplicas
	for i := range s.Schedules {
		of := &s.Schedules[i]
		if of.MinReplicas != nil && fewest != nil && *of.MinReplicas < *fewest {
			fewest = of.MinReplicas
		}
		if of.MaxReplicas != nil && most != nil && *of.MaxReplicas > *most {
			most = of.MaxReplicas
		}
	}
	return fewest, most
}

// Holt holds the weights of the newest value in level and trend.
type Holt struct {
	// Alpha: the weight in the level while the load rises, from 0 (never follows) to 1 (follows at once). Write a fraction as 200m or
	// in quotes, as "0.2".
	// +optional
	// +default="200m"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('[eE][-+]?[0-9]{3}') && isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="holt.levelUp must be a quantity between 0 and 1, such as 200m"
	LevelUp *resource.Quantity `json:"levelUp,omitempty"`

	// Alpha: the weight in the level while the load falls. Write a fraction as 100m or in quotes, as "0.1".
	// +optional
	// +default="100m"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('[eE][-+]?[0-9]{3}') && isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="holt.levelDown must be a quantity between 0 and 1, such as 100m"
	LevelDown *resource.Quantity `json:"levelDown,omitempty"`

	// Alpha: the weight in the trend while the load rises. Write a fraction as 200m or in quotes, as "0.2".
	// +optional
	// +default="200m"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('[eE][-+]?[0-9]{3}') && isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="holt.trendUp must be a quantity between 0 and 1, such as 200m"
	TrendUp *resource.Quantity `json:"trendUp,omitempty"`

	// Alpha: the weight in the trend while the load falls. Write a fraction as 100m or in quotes, as "0.1".
	// +optional
	// +default="100m"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('[eE][-+]?[0-9]{3}') && isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="holt.trendDown must be a quantity between 0 and 1, such as 100m"
	TrendDown *resource.Quantity `json:"trendDown,omitempty"`
}

// Horizon says how far ahead the load is forecast.
type Horizon struct {
	// The lower bound of the startup time. Raise it if readings are late.
	// +optional
	// +default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="horizon.min must be a duration of 0s or more, such as 10s"
	Min *metav1.Duration `json:"min,omitempty"`

	// The upper bound of the startup time. Default: 20m (method Holt: 40s).
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="horizon.max must be a duration of 0s or more, such as 40s"
	Max *metav1.Duration `json:"max,omitempty"`

	// How late the forecast is acted on: the sync period of the HPA controller. It is added to the bounded time.
	// +optional
	// +default="15s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="horizon.reactionDelay must be a duration of 0s or more, such as 15s"
	ReactionDelay *metav1.Duration `json:"reactionDelay,omitempty"`
}

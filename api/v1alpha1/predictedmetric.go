package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PredictedMetric forecasts one metric of the pods behind a scale subresource, and serves the forecast to a
// HorizontalPodAutoscaler through external.metrics.k8s.io.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pm,categories=foresail
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.scaleTargetRef.name`,description="What is scaled"
// +kubebuilder:printcolumn:name="Load",type=string,JSONPath=`.status.current`,description="The metric of each instance now"
// +kubebuilder:printcolumn:name="Predicted",type=string,JSONPath=`.status.predicted`,description="The metric of each instance at the horizon, with the replicas of now"
// +kubebuilder:printcolumn:name="Threshold",type=string,JSONPath=`.spec.threshold`,description="What the metric of an instance should stay below"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`,description="The replicas that the target is set to"
// +kubebuilder:printcolumn:name="Wanted",type=integer,JSONPath=`.status.wantedReplicas`,description="The replicas that the forecast asks for"
// +kubebuilder:printcolumn:name="Target-Wanted",type=integer,JSONPath=`.status.targetWantedReplicas`,priority=1,description="The replicas that all PredictedMetrics of the target ask for"
// +kubebuilder:printcolumn:name="Driven-By",type=string,JSONPath=`.status.drivenBy`,priority=1,description="The PredictedMetric that asks for them"
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.source`,priority=1,description="Where samples come from"
// +kubebuilder:printcolumn:name="Sample-Age",type=string,JSONPath=`.status.sampleAge`,description="The age of the newest sample"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether a forecast is served"
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

// PredictedMetricSpec says what is forecast, for whom, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.staleAfter) || duration(self.staleAfter) <= duration('0s') || ((!has(self.source.pods) || duration(self.staleAfter) >= duration(self.source.pods.interval) + duration(self.source.pods.interval)) && (!has(self.source.prometheus) || duration(self.staleAfter) >= duration(self.source.prometheus.interval) + duration(self.source.prometheus.interval)) && (!has(self.source.resource) || duration(self.staleAfter) >= duration(self.source.resource.interval) + duration(self.source.resource.interval)))",message="staleAfter must be at least twice the interval of the source",fieldPath=".staleAfter"
// +kubebuilder:validation:XValidation:rule="self.maxReplicas >= self.minReplicas",message="maxReplicas must be at least minReplicas",fieldPath=".maxReplicas"
// +kubebuilder:validation:XValidation:rule="duration(has(self.window) ? self.window : self.forecast.method == 'Adaptive' ? '5m' : '90s') >= duration(self.sampleInterval) + duration(self.sampleInterval)",message="window must be at least two sample intervals",fieldPath=".window"
// +kubebuilder:validation:XValidation:rule="duration(self.sampleInterval) < duration('1ms') || duration(has(self.window) ? self.window : self.forecast.method == 'Adaptive' ? '5m' : '90s').getMilliseconds() <= 100000 * duration(self.sampleInterval).getMilliseconds()",message="window must be at most 100000 sample intervals",fieldPath=".window"
// +kubebuilder:validation:XValidation:rule="has(self.model.baseline) == (self.model.type == 'Overhead')",message="model.baseline must be given with type Overhead, and with no other",fieldPath=".model.baseline"
// +kubebuilder:validation:XValidation:rule="!has(self.model.baseline) || quantity(string(self.model.baseline)).isLessThan(quantity(string(self.threshold)))",message="model.baseline must be below threshold",fieldPath=".model.baseline"
// +kubebuilder:validation:XValidation:rule="self.model.type != 'Overhead' || !has(self.model.baseline) || quantity(string(self.model.baseline)).compareTo(quantity(string(self.threshold))) >= 0 || quantity(string(self.model.baseline)).asApproximateFloat() < quantity(string(self.threshold)).asApproximateFloat() / (1.0 + quantity(has(self.decision.scaleDownMargin) ? string(self.decision.scaleDownMargin) : self.forecast.method == 'Adaptive' ? '50m' : '300m').asApproximateFloat())",message="decision.scaleDownMargin must leave threshold/(1 + scaleDownMargin) above model.baseline",fieldPath=".decision.scaleDownMargin"
// +kubebuilder:validation:XValidation:rule="!has(self.saturation) || quantity(string(self.saturation.max)).isGreaterThan(quantity(string(self.threshold)))",message="saturation.max must be above threshold",fieldPath=".saturation.max"
// +kubebuilder:validation:XValidation:rule="duration(self.horizon.max) >= duration(self.horizon.min)",message="horizon.max must be at least horizon.min",fieldPath=".horizon.max"
// +kubebuilder:validation:XValidation:rule="!has(self.forecast.noiseMargin) || self.forecast.method == 'Adaptive'",message="forecast.noiseMargin must be absent unless forecast.method is Adaptive",fieldPath=".forecast.noiseMargin"
//
// The rules on two fields stand here, as rules of model or horizon would refuse the default {} of these. A field whose
// default depends on the method has none in the schema, so that rules on it name both.
type PredictedMetricSpec struct {
	// What is scaled: anything with a scale subresource, in the namespace of the PredictedMetric.
	// +required
	ScaleTargetRef ScaleTargetRef `json:"scaleTargetRef"`

	// Where the samples come from. Exactly one of its fields must be given.
	// +required
	Source Source `json:"source"`

	// What the metric of an instance should stay below, in units of the metric. The HPA reads values in thousandths:
	// a metric with a threshold of less than about 100m is best scaled up before it is exposed.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="threshold must be a quantity above 0, such as 700m"
	Threshold resource.Quantity `json:"threshold"`

	// The fewest replicas that are asked for.
	// +optional
	// +default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="minReplicas must be at least 1"
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// The most replicas that are asked for.
	// +required
	MaxReplicas int32 `json:"maxReplicas"`

	// How the metric of one instance relates to the load that all of them share.
	// +optional
	// +default={}
	Model Model `json:"model,omitzero"`

	// Describes a metric that cannot rise above a bound, as a utilisation cannot, however much load there is.
	// Absent: the metric has no bound.
	// +optional
	Saturation *Saturation `json:"saturation,omitempty"`

	// How the load is forecast. Fields that say so have another default with method Adaptive.
	// +optional
	// +default={}
	Forecast Forecast `json:"forecast,omitzero"`

	// How far back a forecast looks. Default: 90s, with method Adaptive 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="window must be a duration above 0s, such as 90s"
	Window *metav1.Duration `json:"window,omitempty"`

	// The spacing of the time grid that samples are aligned to: about the spacing of the samples themselves.
	// +optional
	// +default="1s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]{1,3})?(h|m|s)|[0-9]+ms)+$') && duration(self) > duration('0s')",message="sampleInterval must be a whole number of milliseconds, at least 1ms, such as 1s"
	SampleInterval *metav1.Duration `json:"sampleInterval,omitempty"`

	// How a new instance takes over load from the others.
	// +optional
	// +default={}
	Redistribution Redistribution `json:"redistribution,omitzero"`

	// How fast level and trend follow the load, with method Holt. The method Adaptive finds that out itself.
	// +optional
	// +default={}
	Smoothing Smoothing `json:"smoothing,omitzero"`

	// How long a new instance takes to become ready.
	// +optional
	// +default={}
	Startup Startup `json:"startup,omitzero"`

	// How far ahead the load is forecast: startup time × multiplier, kept between min and max, and reactionDelay on top.
	// +optional
	// +default={}
	Horizon Horizon `json:"horizon,omitzero"`

	// How a forecast becomes a number of replicas.
	// +optional
	// +default={}
	Decision Decision `json:"decision,omitzero"`

	// The least time between two changes of the number of replicas.
	// +optional
	// +default={}
	Cooldown Cooldown `json:"cooldown,omitzero"`

	// The age of the newest sample from which on the metric is an error and no number. Default: three times the
	// interval of the source, at least 30s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="staleAfter must be a duration above 0s, such as 30s"
	StaleAfter *metav1.Duration `json:"staleAfter,omitempty"`
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
// +kubebuilder:validation:Enum=Linear;Overhead;Quadratic
type ModelType string

// The types of model: g of a value v.
const (
	ModelLinear    ModelType = "Linear"    // g(v) = v
	ModelOverhead  ModelType = "Overhead"  // g(v) = v − baseline
	ModelQuadratic ModelType = "Quadratic" // g(v) = v²
)

// Model says how the metric of one instance relates to the load that all of them share.
type Model struct {
	// Linear: the metric halves when the instances double. Overhead: so it does, but for a baseline that every
	// instance has of itself. Quadratic: the metric grows with the square root of the load.
	// +optional
	// +default="Linear"
	Type ModelType `json:"type,omitempty"`

	// What the metric of an instance without load reads. With type Overhead only.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0",message="model.baseline must be a quantity of 0 or more, such as 100m"
	Baseline *resource.Quantity `json:"baseline,omitempty"`
}

// Saturation describes a metric that cannot rise above max.
type Saturation struct {
	// The highest value that the metric can have.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	Max resource.Quantity `json:"max"`

	// How close to max the metric is taken to be clipped, as a share of max.
	// +optional
	// +default="20m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).isLessThan(quantity('1'))",message="saturation.zone must be a quantity of at least 0 and below 1, such as 20m"
	Zone *resource.Quantity `json:"zone,omitempty"`
}

// ForecastMethod names a way to forecast the load from that of the window.
//
// +kubebuilder:validation:Enum=Holt;Adaptive
type ForecastMethod string

// The methods there are.
const (
	ForecastHolt     ForecastMethod = "Holt"     // the paper's: a level and a trend, smoothed
	ForecastAdaptive ForecastMethod = "Adaptive" // lines through as much of the window as agrees, trusted as far as noise allows
)

// Forecast says how the load is forecast.
type Forecast struct {
	// Holt: the paper's algorithm, which smooths level and trend with fixed weights and damps rises. Adaptive: a straight
	// line through as much of the window as is one, whose slope counts by what noise does not explain of it. It asks for
	// fewer replicas only once the load has fallen.
	// +optional
	// +default="Holt"
	Method ForecastMethod `json:"method,omitempty"`

	// How many standard deviations of the noise of the load are added to a forecast. With method Adaptive only. Default: 800m.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('10')) <= 0",message="forecast.noiseMargin must be a quantity between 0 and 10, such as 800m"
	NoiseMargin *resource.Quantity `json:"noiseMargin,omitempty"`
}

// Redistribution describes how a new instance takes over load from the others.
type Redistribution struct {
	// How long it takes until a new instance counts in full; 0s counts it in full at once.
	// +optional
	// +default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="redistribution.timeout must be a duration of 0s or more, such as 30s"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// How the weight of a new instance rises: 0 in a straight line, above 0 slowly at first, below 0 fast at first.
	// +optional
	// +default="1"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('-50')) >= 0 && quantity(string(self)).compareTo(quantity('50')) <= 0",message="redistribution.shape must be a quantity between -50 and 50, such as 1"
	Shape *resource.Quantity `json:"shape,omitempty"`
}

// Smoothing holds the weights of the newest value in level and trend, for a load that rises and one that falls.
type Smoothing struct {
	// Of the level while the load rises; from 0 (never follows) to 1 (follows at once).
	// +optional
	// +default="200m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="smoothing.levelUp must be a quantity between 0 and 1, such as 200m"
	LevelUp *resource.Quantity `json:"levelUp,omitempty"`

	// Of the level while the load falls.
	// +optional
	// +default="100m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="smoothing.levelDown must be a quantity between 0 and 1, such as 100m"
	LevelDown *resource.Quantity `json:"levelDown,omitempty"`

	// Of the trend while the load rises.
	// +optional
	// +default="200m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="smoothing.trendUp must be a quantity between 0 and 1, such as 200m"
	TrendUp *resource.Quantity `json:"trendUp,omitempty"`

	// Of the trend while the load falls.
	// +optional
	// +default="100m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1')) <= 0",message="smoothing.trendDown must be a quantity between 0 and 1, such as 100m"
	TrendDown *resource.Quantity `json:"trendDown,omitempty"`
}

// Startup describes how long a new instance takes to become ready.
type Startup struct {
	// What is assumed until start-ups have been measured.
	// +optional
	// +default="25s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="startup.initial must be a duration of 0s or more, such as 25s"
	Initial *metav1.Duration `json:"initial,omitempty"`

	// Whether measured start-ups, from the creation of a pod to its readiness, take the place of initial.
	// +optional
	// +default=true
	Adaptive *bool `json:"adaptive,omitempty"`
}

// Horizon says how far ahead the load is forecast.
type Horizon struct {
	// Times the startup time. Default: 1200m, with method Adaptive 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0')) && quantity(string(self)).compareTo(quantity('100')) <= 0",message="horizon.multiplier must be a quantity above 0 and at most 100, such as 1200m"
	Multiplier *resource.Quantity `json:"multiplier,omitempty"`

	// The least of startup time × multiplier.
	// +optional
	// +default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="horizon.min must be a duration of 0s or more, such as 10s"
	Min *metav1.Duration `json:"min,omitempty"`

	// The most of startup time × multiplier.
	// +optional
	// +default="40s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="horizon.max must be a duration of 0s or more, such as 40s"
	Max *metav1.Duration `json:"max,omitempty"`

	// How late the forecast is acted on: the sync period of the HPA controller. It is added after min and max.
	// +optional
	// +default="15s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="horizon.reactionDelay must be a duration of 0s or more, such as 15s"
	ReactionDelay *metav1.Duration `json:"reactionDelay,omitempty"`
}

// Decision says how a forecast becomes a number of replicas.
type Decision struct {
	// From which trend on the load counts as rising or falling: the angle, in degrees, whose tangent is the share of
	// the load by which it changes in a sample interval.
	// +optional
	// +default="10"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).isLessThan(quantity('90'))",message="decision.trendAngle must be a quantity (degrees) of at least 0 and below 90, such as 10"
	TrendAngle *resource.Quantity `json:"trendAngle,omitempty"`

	// How far a forecast rise is trusted: a rise by this many times the present load counts half. With method Holt only.
	// +optional
	// +default="2"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="decision.riskFactor must be a quantity above 0, such as 2"
	RiskFactor *resource.Quantity `json:"riskFactor,omitempty"`

	// How much room scale-down leaves: the replicas that remain would stay below threshold under a load this share
	// higher. With a baseline, threshold/(1 + scaleDownMargin) must stay above it. Default: 300m, with method Adaptive 50m.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('100')) <= 0",message="decision.scaleDownMargin must be a quantity between 0 and 100, such as 300m"
	ScaleDownMargin *resource.Quantity `json:"scaleDownMargin,omitempty"`

	// The share of an instance that is not worth adding one for while the present load is below threshold.
	// +optional
	// +default="100m"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[^eE]*([eE]i?|[eE][-+]?[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).isLessThan(quantity('1'))",message="decision.spillover must be a quantity of at least 0 and below 1, such as 100m"
	Spillover *resource.Quantity `json:"spillover,omitempty"`

	// The most replicas that are added at once; 0 is no limit. Default: 4, with method Adaptive 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="decision.maxStep must be 0 (no limit) or more"
	MaxStep *int32 `json:"maxStep,omitempty"`

	// For how long replicas that were asked for and have not started hold scale-down back.
	// +optional
	// +default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="decision.pendingExpiry must be a duration of 0s or more, such as 60s"
	PendingExpiry *metav1.Duration `json:"pendingExpiry,omitempty"`
}

// Cooldown holds the least time between two changes of the number of replicas, by the directions of the later and the
// earlier one; 0s switches one off. They apply to predicted_replicas and to the status.
type Cooldown struct {
	// Between two scale-ups.
	// +optional
	// +default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="cooldown.upAfterUp must be a duration of 0s or more, such as 5s"
	UpAfterUp *metav1.Duration `json:"upAfterUp,omitempty"`

	// From a scale-down to a scale-up.
	// +optional
	// +default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="cooldown.upAfterDown must be a duration of 0s or more, such as 5s"
	UpAfterDown *metav1.Duration `json:"upAfterDown,omitempty"`

	// From a scale-up to a scale-down, counted from the start of the newest instance. Default: 180s, with method Adaptive 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="cooldown.downAfterUp must be a duration of 0s or more, such as 180s"
	DownAfterUp *metav1.Duration `json:"downAfterUp,omitempty"`

	// Between two scale-downs. Default: 60s, with method Adaptive 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="cooldown.downAfterDown must be a duration of 0s or more, such as 60s"
	DownAfterDown *metav1.Duration `json:"downAfterDown,omitempty"`
}

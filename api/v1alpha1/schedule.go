package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Schedule is a window of time, once or each time that a cron schedule says, in which other bounds hold.
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) == has(self.duration) && has(self.start) == has(self.end) && has(self.schedule) != has(self.start)",message="schedules[] must have either schedule and duration, or start and end"
// +kubebuilder:validation:XValidation:rule="has(self.minReplicas) || has(self.maxReplicas) || has(self.lateness) || has(self.learning)",message="schedules[] must have at least one of minReplicas, maxReplicas, lateness and learning"
// +kubebuilder:validation:XValidation:rule="!has(self.timeZone) || has(self.schedule)",message="schedules[].timeZone must be absent without schedule: start and end have an offset of their own",fieldPath=".timeZone"
// +kubebuilder:validation:XValidation:rule="!has(self.start) || !has(self.end) || self.end > self.start",message="schedules[].end must be after start",fieldPath=".end"
type Schedule struct {
	// What the status calls it.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="schedules[].name must be lower case letters, digits and hyphens, such as black-friday"
	Name string `json:"name"`

	// When the window begins, if it recurs: the five fields of a CronJob's schedule, or a macro such as @daily. A time that clocks skip when
	// they are set forward is the moment at which they are; one that comes twice is the first of both.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|([*?]|[0-5]?[0-9])([-,/]([*?]|[0-5]?[0-9]))* +([*?]|[01]?[0-9]|2[0-3])([-,/]([*?]|[01]?[0-9]|2[0-3]))* +([*?]|[0-2]?[0-9]|3[01])([-,/]([*?]|[0-2]?[0-9]|3[01]))* +([*?]|0?[0-9]|1[0-2]|[a-zA-Z]{3})([-,/]([*?]|0?[0-9]|1[0-2]|[a-zA-Z]{3}))* +([*?]|[0-6]|[a-zA-Z]{3})([-,/]([*?]|[0-6]|[a-zA-Z]{3}))*)$')",message="schedules[].schedule must be a cron schedule of five fields, such as 0 8 * * mon-fri, or @hourly, @daily, @weekly, @monthly or @yearly"
	Schedule string `json:"schedule,omitempty"`

	// How long the window is from each time of schedule.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+h)?([0-9]+m)?(0s)?$') && duration(self) >= duration('1m') && duration(self) <= duration('744h')",message="schedules[].duration must be hours and minutes, from 1m to 744h, such as 10h"
	Duration *metav1.Duration `json:"duration,omitempty"`

	// The time zone of schedule, by the name that the IANA database has for it, such as Europe/Berlin. Default: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][-A-Za-z0-9_+/]*$') && self != 'Local'",message="schedules[].timeZone must be a name of the IANA time zone database, such as Europe/Berlin or UTC"
	TimeZone string `json:"timeZone,omitempty"`

	// When the window begins, if it comes once.
	// +optional
	Start *metav1.Time `json:"start,omitempty"`

	// When the window ends, if it comes once.
	// +optional
	End *metav1.Time `json:"end,omitempty"`

	// The fewest replicas, in place of those of the spec. If that is more, it holds ahead of the window by the horizon, so that pods are
	// ready when it begins. Of windows that overlap the largest counts.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="schedules[].minReplicas must be at least 0"
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// The most replicas, in place of those of the spec. If that is more, it holds ahead of the window by the horizon; if it is less, from
	// the beginning to the end of the window. Of windows that overlap the smallest counts, but never less than the minReplicas that holds.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="schedules[].maxReplicas must be at least 1"
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// For what share of the time pods may be too few, in place of that of the spec. Of windows that overlap the smallest counts. Not
	// with holt.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^(50([.]0{1,3})?|[1-4]?[0-9]([.][0-9]{1,3})?)%$') && !self.matches('^0([.]0+)?%$')",message="schedules[].lateness must be a percentage above 0% and up to 50%, such as 0.1%"
	Lateness string `json:"lateness,omitempty"`

	// Disabled: what the load is in the window is not learned, as on a holiday that no other day is like. Not with holt.
	// +optional
	Learning ScheduleLearning `json:"learning,omitempty"`
}

// ScheduleLearning is whether what the load is in a window is learned. It is where this is absent.
//
// +kubebuilder:validation:Enum=Disabled
type ScheduleLearning string

// LearningDisabled learns nothing.
const LearningDisabled ScheduleLearning = "Disabled"

// Package keep keeps an object, such as an HPA, for each PredictedMetric whose spec requests one: it creates the
// object, corrects it and deletes it, and reports in the status and in events how it is. A Kind has what differs
// between the kinds of objects. Objects that were not created for the PredictedMetric are never changed.
package keep

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
)

// Kind holds the differences between kinds of objects. S is the part of a PredictedMetric's status
// about its object; its zero value is no object. M is the state that the kind keeps of an object
// between two checks; it starts as its zero value, and again with another target.
type Kind[S, M any] struct {
	Type
	Words
	Fields[S]

	// StatusOf returns the status of an object that has a spec.
	StatusOf func(name string, spec any) S
	// Plan returns how the object of a PredictedMetric must be. found is the object that it has, nil for none. It may
	// fail with ErrLater or a Refusal.
	Plan func(pm *v1alpha1.PredictedMetric, found *Found, memory *M) (Plan[S], error)

	// Optional:

	// Prepare is called at the start of each check.
	Prepare func(ctx context.Context, metrics []*v1alpha1.PredictedMetric)
	// Rival names another object that does the same to a target, "" for none. Objects of the kind are known without it.
	Rival func(Target) string
	// Drain is called with an object that will be deleted. It returns the change that must be made first, nil for none,
	// and without a change whether the object may be deleted now.
	Drain func(live client.Object, memory *M, now time.Time) (change client.Object, done bool)
}

// Type has how objects of a kind are read and changed.
type Type struct {
	Resource schema.GroupResource
	// Versions are the versions that a cluster may serve, the preferred one first.
	Versions []string
	// NotServed is the message while no version is served. "" is a kind that every API server has.
	NotServed string
	New       func(version string) client.Object
	NewList   func(version string) client.ObjectList
	// Target returns the target of an object, the zero Target for none.
	Target func(client.Object) Target
	// Spec returns a copy of the spec, which is never changed.
	Spec func(client.Object) any
	// SetSpec writes a copy of a spec to an object.
	SetSpec func(o client.Object, spec any)
	// Conditions returns a bounded copy of the conditions that Plans read.
	Conditions func(client.Object) []metav1.Condition
	// Labels are those of new objects.
	Labels map[string]string
}

func (t *Type) builtIn() bool { return t.NotServed == "" }

// Fields are those of a PredictedMetric that are about its object.
type Fields[S any] struct {
	// Requested reports whether a spec requests an object.
	Requested func(*v1alpha1.PredictedMetricSpec) bool
	// Status returns the field of a status.
	Status func(*v1alpha1.PredictedMetricStatus) *S
	// Condition is the type of the condition.
	Condition string
}

// Words are how messages and events name a kind and what its objects do.
type Words struct {
	Kind       string // HorizontalPodAutoscaler
	Field      string // of the PredictedMetric: spec.autoscaler
	Subject    string // in events and in the log: Autoscaler
	Action     string // of events
	Effect     string // of an object on its target, before the target's name: scales
	Contested  string // reason of a target that has another such object
	Conflict   string // what two of a target do
	DryRun     string // what becomes of an object in dry run, after ", " or "; "
	RightsHint string // how the rights are granted, after "; "
}

// Plan is how an object must be.
type Plan[S any] interface {
	Spec() any
	// Status returns the status of an object that has the spec.
	Status() S
	// Condition returns the condition of an object that has the spec. found is nil if the object has just been created.
	// got is the spec as the API server has it.
	Condition(found *Found, got any) metav1.Condition
	// Routine reports whether the previous spec differs because the Plan has changed, and logs that. Other differences
	// are events.
	Routine(log klog.Logger, before any) bool
}

// Refusal is the error of a Plan that cannot be made, and the condition that says so.
type Refusal metav1.Condition

func (r *Refusal) Error() string { return r.Message }

package keep

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/api/v1alpha1"
)

// Reasons of the conditions of all kinds.
const (
	reasonPending   = "Pending"
	reasonRemoving  = "Removing"
	reasonNameTaken = "NameTaken"
	reasonNotServed = "NotServed"
	reasonForbidden = "Forbidden"
	reasonRejected  = "RejectedByAPIServer"
	reasonFailing   = "RequestsFail"
	reasonDryRun    = serving.ReasonDryRun
)

// announced reports whether the status says that there may be an object.
func (f *Fields[S]) announced(pm *v1alpha1.PredictedMetric) bool {
	return meta.FindStatusCondition(pm.Status.Conditions, f.Condition) != nil
}

// concerns reports whether a PredictedMetric requests an object or may have one. The garbage collector deletes the
// object with its PredictedMetric.
func (f *Fields[S]) concerns(pm *v1alpha1.PredictedMetric) bool {
	return (f.Requested(&pm.Spec) || f.announced(pm)) && pm.DeletionTimestamp == nil
}

// reporter keeps what the statuses of PredictedMetrics have of their objects, for several goroutines, and makes events.
type reporter[S any] struct {
	*Fields[S]
	words  *Words
	events events.EventRecorder
	now    func() time.Time

	mu      sync.Mutex
	states  map[types.UID]state[S]
	failing map[types.UID]time.Time // since when the requests for an object have failed
}

// state is the part of a PredictedMetric's status about its object.
type state[S any] struct {
	key       types.NamespacedName
	owned     S
	condition *metav1.Condition // nil: none, as no object is requested and there is none
}

// AddStatus adds the state of the object of a PredictedMetric to its next status. Until the Keeper knows the state, it
// adds that of the previous status.
func (r *reporter[S]) AddStatus(pm *v1alpha1.PredictedMetric, status *v1alpha1.PredictedMetricStatus, now time.Time) {
	owned := r.Status(status)
	*owned = *r.Status(&pm.Status)
	if s, known := r.get(pm); known {
		*owned = s.owned
		ReplaceCondition(status, r.Condition, s.condition, now)
	} else if r.Requested(&pm.Spec) && !r.announced(pm) {
		ReplaceCondition(status, r.Condition, &metav1.Condition{
			Type: r.Condition, Status: metav1.ConditionUnknown, Reason: reasonPending,
			Message: "the PredictedMetric has not been processed yet",
		}, now)
	}
}

// Statuses returns the known status of each object, by its PredictedMetric. A process that does not lead knows none.
func (r *reporter[S]) Statuses() map[types.NamespacedName]S {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[types.NamespacedName]S{}
	for _, s := range r.states {
		out[s.key] = s.owned
	}
	return out
}

func (r *reporter[S]) get(pm *v1alpha1.PredictedMetric) (state[S], bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known := r.states[pm.UID]
	return s, known
}

func (r *reporter[S]) set(pm *v1alpha1.PredictedMetric, owned S, condition *metav1.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states[pm.UID] = state[S]{client.ObjectKeyFromObject(pm), owned, condition}
	if condition == nil || condition.Reason != reasonFailing {
		delete(r.failing, pm.UID)
	}
}

// forget drops the state of some PredictedMetrics.
func (r *reporter[S]) forget(gone func(types.UID) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.states, func(uid types.UID, _ state[S]) bool { return gone(uid) })
	maps.DeleteFunc(r.failing, func(uid types.UID, _ time.Time) bool { return gone(uid) })
}

// owned returns what was last known of the object that a PredictedMetric owns.
func (r *reporter[S]) owned(pm *v1alpha1.PredictedMetric) S {
	if s, known := r.get(pm); known {
		return s.owned
	}
	return *r.Status(&pm.Status)
}

// setCondition sets the condition of a PredictedMetric, with the status of its object. A new reason for False
// is an event.
func (r *reporter[S]) setCondition(
	ctx context.Context, pm *v1alpha1.PredictedMetric, owned S, status metav1.ConditionStatus, reason, message string,
) {
	before := meta.FindStatusCondition(pm.Status.Conditions, r.Condition)
	if s, known := r.get(pm); known && s.condition != nil {
		before = s.condition
	}
	if status == metav1.ConditionFalse && (before == nil || before.Status != status || before.Reason != reason) {
		event := corev1.EventTypeWarning
		if reason == reasonDryRun {
			event = corev1.EventTypeNormal // no fault
		}
		r.report(ctx, pm, event, reason, message)
	}
	r.set(pm, owned, &metav1.Condition{Type: r.Condition, Status: status, Reason: reason, Message: message})
}

// setFailing sets the condition of an object that is not known, once requests have failed for FailingPeriod.
func (r *reporter[S]) setFailing(ctx context.Context, pm *v1alpha1.PredictedMetric, message string) {
	r.mu.Lock()
	since, failing := r.failing[pm.UID]
	if !failing {
		since = r.now()
		r.failing[pm.UID] = since
	}
	r.mu.Unlock()
	if r.now().Sub(since) >= FailingPeriod {
		r.setCondition(ctx, pm, r.owned(pm), metav1.ConditionUnknown, reasonFailing, message)
	}
}

// reportChange logs a change of an object, and makes an event of it.
func (r *reporter[S]) reportChange(
	ctx context.Context, pm *v1alpha1.PredictedMetric, what, format string, args ...any,
) {
	r.report(ctx, pm, corev1.EventTypeNormal, r.words.Subject+what, fmt.Sprintf(format, args...))
}

// report logs what has happened, and makes an event of it.
func (r *reporter[S]) report(ctx context.Context, pm *v1alpha1.PredictedMetric, kind, reason, message string) {
	klog.FromContext(ctx).Info(r.words.Subject, "predictedmetric", klog.KObj(pm), "reason", reason, "message", message)
	r.events.Eventf(pm, nil, kind, reason, r.words.Action, "%s", message)
}

// ReplaceCondition sets a condition of a status, or removes it if c is nil.
func ReplaceCondition(status *v1alpha1.PredictedMetricStatus, kind string, c *metav1.Condition, now time.Time) {
	if c == nil {
		meta.RemoveStatusCondition(&status.Conditions, kind)
		return
	}
	next := *c
	next.ObservedGeneration, next.LastTransitionTime = status.ObservedGeneration, metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, next)
}

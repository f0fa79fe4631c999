package report

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
)

const (
	// refreshEvery is how often the status is written if only numbers change.
	refreshEvery = 30 * time.Second
	// statusTimeout bounds how long a cycle waits for the write of the status.
	statusTimeout = 3 * time.Second
)

// statusWriter writes the status and the Events of one pool.
type statusWriter struct {
	client client.Client
	events events.EventRecorder // nil: none

	last    *v1alpha1.WorkerPoolStatus // as written, with decisions that are not written yet; nil: read it first
	written time.Time
}

// reset makes the next write read the status first.
func (w *statusWriter) reset() { w.last = nil }

// write updates the status: at once if a decision or an event is new, otherwise every refreshEvery.
func (w *statusWriter) write(ctx context.Context, cycle nodepool.CycleReport, changed bool) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var pool v1alpha1.WorkerPool
	if err := w.client.Get(ctx, client.ObjectKey{Name: cycle.Pool}, &pool); err != nil {
		klog.FromContext(ctx).V(1).Info("Cannot read the WorkerPool", "error", err.Error())
		return
	}
	if w.events != nil {
		recordEvents(w.events, &pool, cycle, changed)
	}
	if w.last == nil {
		w.last = pool.Status.DeepCopy()
	}
	next := statusOf(*w.last, &pool, cycle)
	if !changed && !urgent(w.last, &next) && cycle.At.Sub(w.written) < refreshEvery {
		w.last.Decisions = next.Decisions // written later
		return
	}
	if err := patchStatus(ctx, w.client, &pool, next); err != nil {
		w.last.Decisions = next.Decisions
		klog.FromContext(ctx).V(1).Info("Cannot write the status; the next cycle tries again", "error", err.Error())
		return
	}
	w.last, w.written = &next, cycle.At
}

// patchStatus writes the difference of the status, except for the journal, which belongs to the store.
func patchStatus(
	ctx context.Context, c client.Client, pool *v1alpha1.WorkerPool, next v1alpha1.WorkerPoolStatus,
) error {
	updated := pool.DeepCopy()
	updated.Status = *next.DeepCopy()
	updated.Status.Journal = pool.Status.Journal
	if equality.Semantic.DeepEqual(pool.Status, updated.Status) {
		return nil
	}
	return client.IgnoreNotFound(c.Status().Patch(ctx, updated, client.MergeFrom(pool)))
}

// urgent reports whether more than numbers has changed. Fields that other programs act on are written at once: for
// example, a scheduler avoids nodes that are being removed.
func urgent(old, next *v1alpha1.WorkerPoolStatus) bool {
	return old.ObservedGeneration != next.ObservedGeneration || actionChanged(old.Action, next.Action) ||
		!slices.Equal(old.Terminating, next.Terminating) ||
		!slices.Equal(old.RemovalCandidates, next.RemovalCandidates) ||
		slices.ContainsFunc(next.Conditions, func(c metav1.Condition) bool { return conditionChanged(old.Conditions, c) })
}

func actionChanged(old, next *v1alpha1.PoolAction) bool {
	if old == nil || next == nil {
		return old != next
	}
	return old.ID != next.ID || old.Progress != next.Progress || !slices.Equal(old.Nodes, next.Nodes)
}

// conditionChanged reports whether a condition changed, apart from messages that contain numbers.
func conditionChanged(list []metav1.Condition, c metav1.Condition) bool {
	old := meta.FindStatusCondition(list, c.Type)
	return old == nil || old.Status != c.Status || old.Reason != c.Reason ||
		c.Type == v1alpha1.ConditionDeleting && old.Message != c.Message
}

// InvalidSpec writes to the status of a pool that does not run why its spec is invalid. Running pools have a
// [Reporter].
func InvalidSpec(ctx context.Context, c client.Client, pool *v1alpha1.WorkerPool, why error) error {
	next := *pool.Status.DeepCopy()
	for _, condition := range invalidSpec(pool, why) {
		condition.ObservedGeneration = pool.Generation
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	return patchStatus(ctx, c, pool, next)
}

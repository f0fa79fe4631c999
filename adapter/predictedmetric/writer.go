package predictedmetric

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/share"
)

const (
	// checkPeriod is how often the writer checks for new decisions and changed conditions.
	checkPeriod = 2 * time.Second
	// refreshPeriod is how often numbers alone are written.
	refreshPeriod = 15 * time.Second
	// refreshesPerSecond bounds the load on the API server: many PredictedMetrics are refreshed less
	// often each, and never all at once.
	refreshesPerSecond = 10
)

// Writer writes status and events. Only the leader runs it.
type Writer struct {
	Client     client.Client
	Metrics    keep.Metrics
	Reconciler *Reconciler
	Events     events.EventRecorder
	Now        func() time.Time
	// Keepers add what the status has of the objects that they keep.
	Keepers []keep.Runner

	written   map[types.UID]time.Time
	refreshes int // how many more there may be in this check
	rotation  share.Turns
	reports   map[types.UID]*reports
}

// Start writes the statuses until the context ends.
func (w *Writer) Start(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("status"))
	w.written, w.reports = map[types.UID]time.Time{}, map[types.UID]*reports{}
	ticker := time.NewTicker(checkPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := w.writeDueStatuses(ctx, share.Spread(ctx, checkPeriod)); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Cannot write the status of PredictedMetrics; trying again", "in",
					checkPeriod)
			}
		}
	}
}

// maxCheck ends a check that takes long, because many statuses are urgent: in the next one each
// namespace has its turn again.
const maxCheck = 2 * checkPeriod

// checkedAtOnce is how many statuses are checked one after the other without a pause.
const checkedAtOnce = 16

// writeDueStatuses checks every status. Namespaces take turns, each with those first that were
// written the longest ago. It waits before each part, with the share of those that came before.
func (w *Writer) writeDueStatuses(ctx context.Context, wait func(share float64) time.Duration) error {
	metrics, err := w.Metrics()
	if err != nil {
		return err
	}
	period := max(refreshPeriod, time.Duration(len(metrics))*time.Second/refreshesPerSecond)
	w.refreshes = int((time.Duration(len(metrics))*checkPeriod + period - 1) / period)
	slices.SortStableFunc(metrics,
		func(a, b *v1alpha1.PredictedMetric) int { return w.written[a.UID].Compare(w.written[b.UID]) })
	share.Order(&w.rotation, metrics, func(pm *v1alpha1.PredictedMetric) string { return pm.Namespace })
	present := make(map[types.UID]time.Time, len(metrics))
	for _, pm := range metrics {
		present[pm.UID] = w.written[pm.UID]
	}
	began := w.Now()
	var errs []error
	for i, pm := range metrics {
		if w.Now().Sub(began) >= maxCheck {
			break // the rest comes first among those of their namespaces in the next check
		}
		if i%checkedAtOnce == 0 {
			wait(float64(i) / float64(len(metrics)))
			if ctx.Err() != nil { // another replica may write by now
				return ctx.Err()
			}
		}
		tried, err := w.write(ctx, pm, period)
		if tried {
			w.rotation.Take(pm.Namespace)
			present[pm.UID] = w.Now()
		}
		errs = append(errs, err)
	}
	w.written = present
	maps.DeleteFunc(w.reports, func(uid types.UID, _ *reports) bool { _, ok := present[uid]; return !ok })
	return errors.Join(errs...)
}

// write updates one status and its events: at once if a condition or the decision has changed, else
// once a period, or later if as many were refreshed in this check as may be. One that cannot be
// written has been tried too: others would wait for it.
func (w *Writer) write(ctx context.Context, pm *v1alpha1.PredictedMetric,
	period time.Duration) (tried bool, err error) {
	now := w.Now()
	key := client.ObjectKeyFromObject(pm)
	s, known := w.Reconciler.Forecaster.Get(key)
	status := statusOf(pm, w.Reconciler.problems.get(key), s, known, now)
	for _, k := range w.Keepers {
		k.AddStatus(pm, &status, now)
	}
	w.report(pm, &status, now)
	refresh := !urgent(&pm.Status, &status)
	if refresh && (now.Sub(w.written[pm.UID]) < period || w.refreshes == 0) {
		return false, nil
	}
	status.UpdateTime = pm.Status.UpdateTime
	if equality.Semantic.DeepEqual(pm.Status, status) {
		return true, nil
	}
	if refresh {
		w.refreshes--
	}
	status.UpdateTime = new(metav1.NewTime(now))
	before := pm.DeepCopy()
	after := pm.DeepCopy()
	after.Status = *status.DeepCopy() // parts of it may be the cache's
	// A replica that has lost the lease may still be writing: of two the second one fails.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := w.Client.Status().Patch(ctx, after, patch); err != nil {
		return refresh, client.IgnoreNotFound(ignoreConflict(err))
	}
	w.record(ctx, before, after, s.Ready)
	return true, nil
}

// ignoreConflict drops the error of a concurrent change: the next check sees it.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// urgent returns whether more than numbers has changed.
func urgent(before, after *v1alpha1.PredictedMetricStatus) bool {
	if decided(before.LastDecision, after.LastDecision) || before.ObservedGeneration != after.ObservedGeneration ||
		!slices.Equal(before.ActiveSchedules, after.ActiveSchedules) || before.Autoscaler != after.Autoscaler ||
		(before.CapacityBuffer == nil) != (after.CapacityBuffer == nil) ||
		len(before.Conditions) > len(after.Conditions) {
		return true
	}
	for _, c := range after.Conditions {
		old := meta.FindStatusCondition(before.Conditions, c.Type)
		if old == nil || old.Status != c.Status || old.Reason != c.Reason {
			return true
		}
	}
	return false
}

// record logs what has changed, and makes an event of a decision.
func (w *Writer) record(ctx context.Context, before, after *v1alpha1.PredictedMetric, ready int) {
	log := klog.FromContext(ctx).WithValues("predictedmetric", client.ObjectKeyFromObject(after))
	if d := after.Status.LastDecision; decided(before.Status.LastDecision, d) {
		log.Info("Decided", "action", d.Action, "desired", d.Desired, "reason", d.Reason, "message", d.Message, "ready",
			ready, "dryRun", after.Spec.DryRun)
		note := d.Message
		if after.Spec.DryRun {
			note = "in dry run: " + note
		}
		// Events that differ in the note alone are folded into the first of them, so the action
		// names the count.
		w.Events.Eventf(after, nil, corev1.EventTypeNormal, d.Reason, fmt.Sprintf("ScaleTo%d", d.Desired), "%s", note)
	}
	for _, c := range after.Status.Conditions {
		old := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		if old == nil || old.Status != c.Status || old.Reason != c.Reason {
			log.Info("Condition changed", "type", c.Type, "status", c.Status, "reason", c.Reason, "message", c.Message)
		}
	}
}

const (
	// startGrace is how long a PredictedMetric may take from its creation, or its pods from their
	// start, until its first forecast without a Warning.
	startGrace = 2 * time.Minute
	// faultGrace is how long a fault that may pass by itself lasts without a Warning.
	faultGrace = 30 * time.Second
	// repeatPeriod is how long the event of one cause is not repeated.
	repeatPeriod = 10 * time.Minute
)

// grace returns the time for which a reason of Ready=False gets no Warning, and whether it ever gets
// one.
func grace(reason string) (wait time.Duration, warns bool) {
	switch reason {
	case string(snapshot.InvalidSpec), string(snapshot.SourceFailing), string(snapshot.Stale), string(snapshot.BadSamples):
		return 0, true // the user must act, or samples have been missing for staleAfter
	case string(snapshot.WaitingForSamples), string(snapshot.WarmingUp):
		return startGrace, true
	case string(snapshot.NoReadyPods):
		return 0, false // a target may be scaled to zero
	default:
		return faultGrace, true
	}
}

// reports records the events that were written about the condition Ready of one PredictedMetric.
type reports struct {
	reason string               // of the condition now
	since  time.Time            // since when it has this reason
	sent   map[string]time.Time // by reason
	served bool                 // the last event was of a forecast that is served
}

// report makes an event of the condition Ready once its grace has passed, each cause once: a
// healthy start has no Warning.
func (w *Writer) report(pm *v1alpha1.PredictedMetric, status *v1alpha1.PredictedMetricStatus, now time.Time) {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status == metav1.ConditionUnknown {
		return
	}
	r := w.reports[pm.UID]
	if r == nil {
		r = reportsBefore(pm, now)
		w.reports[pm.UID] = r
	}
	if r.reason != c.Reason {
		r.reason, r.since = c.Reason, now
	}
	if c.Status == metav1.ConditionTrue {
		if !r.served {
			r.served = true
			w.Events.Eventf(pm, nil, corev1.EventTypeNormal, c.Reason, "Forecast", "%s", c.Message)
		}
		return
	}
	wait, warns := grace(c.Reason)
	if !warns || now.Sub(r.since) < wait {
		return
	}
	if sent, ok := r.sent[c.Reason]; ok && (!sent.Before(r.since) || now.Sub(sent) < repeatPeriod) {
		return
	}
	r.sent[c.Reason], r.served = now, false
	w.Events.Eventf(pm, nil, corev1.EventTypeWarning, c.Reason, "Forecast", "%s", c.Message)
}

// reportsBefore assumes that another leader has made the events of the present status.
func reportsBefore(pm *v1alpha1.PredictedMetric, now time.Time) *reports {
	r := &reports{sent: map[string]time.Time{}}
	c := meta.FindStatusCondition(pm.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status == metav1.ConditionUnknown {
		return r
	}
	r.reason, r.since = c.Reason, c.LastTransitionTime.Time
	r.served = c.Status == metav1.ConditionTrue
	if wait, warns := grace(c.Reason); !r.served && warns && now.Sub(r.since) >= wait {
		r.sent[c.Reason] = now
	}
	return r
}

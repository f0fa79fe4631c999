package predictedmetric

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	// lookEvery is how often the writer looks for decisions and conditions that have changed.
	lookEvery = 2 * time.Second
	// refreshEvery is how often numbers alone are brought up to date.
	refreshEvery = 15 * time.Second
	// refreshesPerSecond bounds what refreshing numbers costs the API server: with many PredictedMetrics each is
	// refreshed less often.
	refreshesPerSecond = 20
)

// Writer writes status and events. Only the leader runs it.
type Writer struct {
	Client     client.Client
	Reconciler *Reconciler
	Events     events.EventRecorder
	Log        logr.Logger
	Now        func() time.Time

	written map[types.UID]time.Time
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (w *Writer) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (w *Writer) Start(ctx context.Context) error {
	w.written = map[types.UID]time.Time{}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := w.writeAll(ctx); err != nil && ctx.Err() == nil {
				w.Log.Error(err, "cannot write status; trying again", "in", lookEvery)
			}
		}
	}
}

func (w *Writer) writeAll(ctx context.Context) error {
	var list v1alpha1.PredictedMetricList
	// What is listed is the cache's own: it is only read, and copied where a status is written.
	if err := w.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	period := max(refreshEvery, time.Duration(len(list.Items))*time.Second/refreshesPerSecond)
	present := make(map[types.UID]time.Time, len(list.Items))
	var errs []error
	for i := range list.Items {
		pm := &list.Items[i]
		present[pm.UID] = w.written[pm.UID]
		wrote, err := w.write(ctx, pm, period)
		if wrote {
			present[pm.UID] = w.Now()
		}
		errs = append(errs, err)
	}
	w.written = present
	return errors.Join(errs...)
}

// write brings one status up to date: at once if a condition or the decision has changed, else once a period.
func (w *Writer) write(ctx context.Context, pm *v1alpha1.PredictedMetric, period time.Duration) (wrote bool, err error) {
	now := w.Now()
	key := client.ObjectKeyFromObject(pm)
	s, known := w.Reconciler.Forecaster.Get(key)
	status := statusOf(pm, w.Reconciler.problems.get(key), s, known, now)
	if !pressing(&pm.Status, &status) && now.Sub(w.written[pm.UID]) < period {
		return false, nil
	}
	if equality.Semantic.DeepEqual(pm.Status, status) {
		return true, nil
	}
	before := pm.DeepCopy()
	after := pm.DeepCopy()
	after.Status = *status.DeepCopy() // parts of it may be the cache's
	if err := w.Client.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return false, client.IgnoreNotFound(conflictIsNothing(err))
	}
	w.tell(before, after, s)
	return true, nil
}

// conflictIsNothing drops an error that says somebody else was faster: the next look sees what they wrote.
func conflictIsNothing(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// pressing tells whether more has changed than numbers.
func pressing(before, after *v1alpha1.PredictedMetricStatus) bool {
	if decided(before.LastDecision, after.LastDecision) || before.ObservedGeneration != after.ObservedGeneration {
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

// tell makes events of what has changed.
func (w *Writer) tell(before, after *v1alpha1.PredictedMetric, s snapshot.Snapshot) {
	log := w.Log.WithValues("predictedmetric", client.ObjectKeyFromObject(after))
	if d := after.Status.LastDecision; decided(before.Status.LastDecision, d) {
		log.Info("decided", "action", d.Action, "wanted", d.Wanted, "reason", d.Reason, "why", d.Message, "ready", s.Ready)
		// Events that differ in the note alone are folded into the first of them, so the action names the count.
		w.Events.Eventf(after, nil, corev1.EventTypeNormal, d.Reason, fmt.Sprintf("ScaleTo%d", d.Wanted), "%s", d.Message)
	}
	for _, c := range after.Status.Conditions {
		old := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		if old != nil && old.Status == c.Status && old.Reason == c.Reason {
			continue
		}
		log.Info("condition changed", "type", c.Type, "status", c.Status, "reason", c.Reason, "message", c.Message)
		if c.Type != v1alpha1.ConditionReady || c.Status == metav1.ConditionUnknown {
			continue
		}
		kind := corev1.EventTypeNormal
		if c.Status == metav1.ConditionFalse {
			kind = corev1.EventTypeWarning
		}
		w.Events.Eventf(after, nil, kind, c.Reason, "Forecast", "%s", c.Message)
	}
}

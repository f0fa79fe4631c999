package checkpoint

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/share"
)

const (
	// writePeriod is how often a checkpoint is written at most.
	writePeriod = 10 * time.Minute
	// writeEach is how often one is written of all: many PredictedMetrics have older checkpoints.
	writeEach = 500 * time.Millisecond
	// planPeriod is how often it is found out which are due.
	planPeriod = 10 * time.Second
	// flushLimit is how long the last ones may take to be written, within the time until another
	// replica may be elected.
	flushLimit = 5 * time.Second

	fieldOwner = client.FieldOwner("foresail")
)

// writer writes the checkpoints of the elected replica.
type writer struct {
	*state
	present  []subject // all PredictedMetrics
	due      []subject // those to write next: namespaces take turns, each with its oldest first
	rotation share.Turns
	planned  time.Time // when these were found
	tried    map[types.NamespacedName]time.Time
	paused   time.Time // nothing is written until then
}

// subject is a PredictedMetric whose checkpoint is written.
type subject struct {
	key     types.NamespacedName
	uid     types.UID
	written time.Time
}

// writeNext writes one checkpoint, if one is due.
func (w *writer) writeNext(ctx context.Context) {
	now := w.Now()
	if now.Before(w.paused) {
		return
	}
	if now.Sub(w.planned) >= planPeriod {
		if err := w.plan(ctx, now); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot list PredictedMetrics")
			return
		}
	}
	for len(w.due) > 0 {
		next := w.due[0]
		w.due = w.due[1:]
		if learned, ok := w.Forecasts.Checkpoint(next.key); ok {
			w.write(ctx, next, &learned)
			return
		}
	}
}

// plan finds out which checkpoints are due.
func (w *writer) plan(ctx context.Context, now time.Time) error {
	var list v1alpha1.PredictedMetricList
	if err := w.Metrics.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	w.planned, w.present, w.due = now, make([]subject, 0, len(list.Items)), w.due[:0]
	present := make(map[types.NamespacedName]bool, len(list.Items))
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range list.Items {
		pm := &list.Items[i]
		s := subject{key: client.ObjectKeyFromObject(pm), uid: pm.UID}
		s.written = w.written[s.key]
		present[s.key] = true
		w.present = append(w.present, s)
		tried, failed := w.tried[s.key]
		if now.Sub(s.written) >= writePeriod && (!failed || now.Sub(tried) >= retryPeriod) {
			w.due = append(w.due, s)
		}
	}
	maps.DeleteFunc(w.written, func(key types.NamespacedName, _ time.Time) bool { return !present[key] })
	maps.DeleteFunc(w.tried, func(key types.NamespacedName, _ time.Time) bool { return !present[key] })
	slices.SortFunc(w.due, older)
	share.Order(&w.rotation, w.due, subject.namespace)
	return nil
}

func (s subject) namespace() string { return s.key.Namespace }

func older(a, b subject) int {
	return cmp.Or(a.written.Compare(b.written), strings.Compare(a.key.String(), b.key.String()))
}

func (w *writer) write(ctx context.Context, s subject, learned *forecaster.Checkpoint) {
	now := w.Now()
	w.rotation.Take(s.namespace())
	o, err := Object(s.key, s.uid, learned, now)
	if err == nil {
		err = w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), fieldOwner, client.ForceOwnership)
	}
	w.telemetry.asked(verbWrite, err)
	if err == nil {
		w.Forecasts.Saved(s.key, *learned)
		w.setWritten(s.key, now)
		delete(w.tried, s.key)
		return
	}
	w.tried[s.key] = now
	if meta.IsNoMatchError(err) { // no write can succeed; all others may be one namespace's
		w.paused = now.Add(retryPeriod)
	}
	if ctx.Err() == nil && !apierrors.HasStatusCause(err, "NamespaceTerminating") && w.failures.Due("write", w.Now()) {
		klog.FromContext(ctx).Error(err,
			"Cannot write a PredictedMetricCheckpoint: a restart loses what is learned of the load; trying again",
			"predictedmetric", s.key, "in", retryPeriod)
	}
}

// flush writes what has been learned since the last checkpoints, the oldest of each namespace
// first, as far as there is time.
func (w *writer) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
	defer cancel()
	w.mu.Lock()
	for i := range w.present {
		w.present[i].written = w.written[w.present[i].key]
	}
	w.mu.Unlock()
	slices.SortFunc(w.present, older)
	share.Order(&w.rotation, w.present, subject.namespace)
	for _, s := range w.present {
		if ctx.Err() != nil || w.Now().Before(w.paused) {
			return
		}
		if learned, ok := w.Forecasts.Checkpoint(s.key); ok {
			w.write(ctx, s, &learned)
		}
	}
}

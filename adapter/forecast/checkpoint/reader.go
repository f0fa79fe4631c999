package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	// knownPoll is how often a start checks whether all PredictedMetrics are followed.
	knownPoll = 200 * time.Millisecond
	// seekPeriod is how often the checkpoints of PredictedMetrics are read that came later.
	seekPeriod = 10 * time.Second
	// seekMost is how many of them are read one by one.
	seekMost = 20
	// pageSize is how many checkpoints are in memory at once.
	pageSize = 50
	// resumeWait is how long after the end of a watch the next one begins, and retryPeriod how long after a failure.
	resumeWait, retryPeriod = time.Second, time.Minute
)

// reader applies the checkpoints of a namespace.
type reader struct {
	*state
	namespace string // "" for all
}

// run applies all checkpoints first and then each new one, until the context ends. None is kept.
func (r *reader) run(ctx context.Context) {
	for r.Known() != nil {
		if !sleep(ctx, knownPoll) {
			return
		}
	}
	version, listed, wait := "", false, time.Duration(0)
	for sleep(ctx, wait) {
		var err error
		if listed {
			version, err = r.follow(ctx, version)
		} else {
			version, err = r.list(ctx)
		}
		listed, wait = err == nil, resumeWait
		switch {
		case ctx.Err() != nil:
			return
		case listed:
			r.telemetry.asked(verbList, nil)
		case errors.Is(err, errMany), apierrors.IsResourceExpired(err), apierrors.IsGone(err): // all are listed again
		default:
			wait = retryPeriod
			r.telemetry.asked(verbList, err)
			if r.failures.Due("read "+r.namespace, r.Now()) {
				klog.FromContext(ctx).Error(err,
					"Cannot read PredictedMetricCheckpoints: a restart loses what is learned of loads, and replicas learn apart; trying again",
					"namespace", r.namespace, "in", retryPeriod)
			}
		}
	}
}

// errMany ends a watch for a list.
var errMany = errors.New("many PredictedMetrics have come")

// sleep returns false once the context has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}

// list applies all checkpoints, and returns the version that they are of. What has none then has none.
func (r *reader) list(ctx context.Context) (version string, err error) {
	waiting := r.without()
	page := &client.ListOptions{Namespace: r.namespace, Limit: pageSize}
	for {
		list := emptyList()
		if err := r.Client.List(ctx, list, page); err != nil {
			return "", err
		}
		for i := range list.Items {
			r.apply(ctx, &list.Items[i])
		}
		if page.Continue = list.GetContinue(); page.Continue == "" {
			for _, key := range waiting {
				r.Forecasts.NoCheckpoint(key)
			}
			return list.GetResourceVersion(), nil
		}
	}
}

// without returns the PredictedMetrics that wait for their checkpoint.
func (r *reader) without() (keys []types.NamespacedName) {
	for _, key := range r.Forecasts.WithoutCheckpoint() {
		if r.namespace == metav1.NamespaceAll || key.Namespace == r.namespace {
			keys = append(keys, key)
		}
	}
	return keys
}

// follow applies what changes after a version until the watch ends, and returns the version to go
// on from. After an error all are listed again.
func (r *reader) follow(ctx context.Context, version string) (string, error) {
	w, err := r.Client.Watch(ctx, emptyList(), &client.ListOptions{
		Namespace: r.namespace, Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true},
	})
	if err != nil {
		return "", err
	}
	defer w.Stop()
	seek := time.NewTicker(seekPeriod)
	defer seek.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case event, ok := <-w.ResultChan():
			if !ok {
				return version, nil
			}
			if version, err = r.take(ctx, event); err != nil {
				return "", err
			}
		case <-seek.C:
			waiting := r.without()
			if len(waiting) > seekMost {
				return "", errMany
			}
			for _, key := range waiting {
				if err := r.get(ctx, key); err != nil {
					return "", err
				}
			}
		}
	}
}

// take applies an event, and returns its version.
func (r *reader) take(ctx context.Context, event watch.Event) (string, error) {
	o, ok := event.Object.(*unstructured.Unstructured)
	if event.Type == watch.Error || !ok {
		return "", apierrors.FromObject(event.Object)
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		r.apply(ctx, o)
	case watch.Deleted:
		r.forget(ctx, o)
	}
	return o.GetResourceVersion(), nil
}

// get applies the checkpoint of one PredictedMetric.
func (r *reader) get(ctx context.Context, key types.NamespacedName) error {
	o := emptyObject()
	err := r.Client.Get(ctx, key, o)
	switch {
	case apierrors.IsNotFound(err):
		r.Forecasts.NoCheckpoint(key)
		return nil
	case err == nil:
		r.apply(ctx, o)
	}
	return err
}

// errForeign is of a checkpoint that is not of the PredictedMetric of its name.
var errForeign = errors.New("it is not owned by the PredictedMetric of its name")

// apply has the PredictedMetric of a checkpoint go on from it.
func (r *reader) apply(ctx context.Context, o *unstructured.Unstructured) {
	key := client.ObjectKeyFromObject(o)
	adopted, err := r.restore(ctx, key, o)
	result := "Known"
	switch {
	case errors.Is(err, forecaster.ErrNotFollowed):
		return // it is read again once it is
	case err != nil:
		result = "Ignored"
		r.Forecasts.NoCheckpoint(key)
		klog.FromContext(ctx).V(1).Info("Ignored a PredictedMetricCheckpoint", "predictedmetric", key, "reason",
			err.Error())
	case adopted:
		result = "Adopted"
	}
	r.telemetry.restores.WithLabelValues(result).Inc()
}

func (r *reader) restore(ctx context.Context, key types.NamespacedName, o *unstructured.Unstructured) (bool, error) {
	if !r.isOwned(ctx, key, o) {
		return false, errForeign
	}
	var checkpoint v1alpha1.PredictedMetricCheckpoint
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &checkpoint); err != nil {
		return false, err
	}
	data, err := decompress(checkpoint.Data)
	if err != nil {
		return false, fmt.Errorf("decompress: %w", err)
	}
	adopted, err := r.Forecasts.Restore(key, data, !r.leading.Load())
	if now := r.Now(); err == nil {
		at := checkpoint.Updated.Time
		if at.After(now) {
			at = now
		}
		r.setWritten(key, at)
	}
	return adopted, err
}

// isOwned returns whether an object is of the present PredictedMetric of its name, not of one that was deleted.
func (r *reader) isOwned(ctx context.Context, key types.NamespacedName, o *unstructured.Unstructured) bool {
	var pm v1alpha1.PredictedMetric
	return r.Metrics.Get(ctx, key, &pm) == nil && keep.OwnerOf(o) == pm.UID
}

// forget has the load of a PredictedMetric learned from nothing whose checkpoint was deleted.
func (r *reader) forget(ctx context.Context, o *unstructured.Unstructured) {
	key := client.ObjectKeyFromObject(o)
	r.mu.Lock()
	delete(r.written, key)
	r.mu.Unlock()
	if !r.isOwned(ctx, key, o) {
		return // it went with its PredictedMetric
	}
	r.Forecasts.Forget(key)
	klog.FromContext(ctx).Info("A PredictedMetricCheckpoint was deleted: learning the load again", "predictedmetric",
		key)
}

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

// read applies the checkpoints of a namespace, all first and then each new one, until the context ends. None is kept.
func (c *Checkpoints) read(ctx context.Context, namespace string) {
	for c.Known() != nil {
		if !sleep(ctx, knownPoll) {
			return
		}
	}
	version, listed, wait := "", false, time.Duration(0)
	for sleep(ctx, wait) {
		var err error
		if listed {
			version, err = c.follow(ctx, namespace, version)
		} else {
			version, err = c.list(ctx, namespace)
		}
		listed, wait = err == nil, resumeWait
		switch {
		case ctx.Err() != nil:
			return
		case listed:
			c.telemetry.asked(verbList, nil)
		case errors.Is(err, errMany), apierrors.IsResourceExpired(err), apierrors.IsGone(err): // all are listed again
		default:
			wait = retryPeriod
			c.telemetry.asked(verbList, err)
			if c.failures.Due("read "+namespace, c.Now()) {
				klog.FromContext(ctx).Error(err, "Cannot read PredictedMetricCheckpoints: a restart loses what is learned of loads, and replicas learn apart; trying again",
					"namespace", namespace, "in", retryPeriod)
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
func (c *Checkpoints) list(ctx context.Context, namespace string) (version string, err error) {
	waiting := c.without(namespace)
	page := &client.ListOptions{Namespace: namespace, Limit: pageSize}
	for {
		list := emptyList()
		if err := c.Client.List(ctx, list, page); err != nil {
			return "", err
		}
		for i := range list.Items {
			c.apply(ctx, &list.Items[i])
		}
		if page.Continue = list.GetContinue(); page.Continue == "" {
			for _, key := range waiting {
				c.Forecasts.NoCheckpoint(key)
			}
			return list.GetResourceVersion(), nil
		}
	}
}

// without returns the PredictedMetrics of a namespace that wait for their checkpoint.
func (c *Checkpoints) without(namespace string) (keys []types.NamespacedName) {
	for _, key := range c.Forecasts.WithoutCheckpoint() {
		if namespace == metav1.NamespaceAll || key.Namespace == namespace {
			keys = append(keys, key)
		}
	}
	return keys
}

// follow applies what changes after a version until the watch ends, and returns the version to go on from. After an error
// all are listed again.
func (c *Checkpoints) follow(ctx context.Context, namespace, version string) (string, error) {
	w, err := c.Client.Watch(ctx, emptyList(), &client.ListOptions{
		Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true},
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
			if version, err = c.take(ctx, event); err != nil {
				return "", err
			}
		case <-seek.C:
			waiting := c.without(namespace)
			if len(waiting) > seekMost {
				return "", errMany
			}
			for _, key := range waiting {
				if err := c.get(ctx, key); err != nil {
					return "", err
				}
			}
		}
	}
}

// take applies an event, and returns its version.
func (c *Checkpoints) take(ctx context.Context, event watch.Event) (string, error) {
	o, ok := event.Object.(*unstructured.Unstructured)
	if event.Type == watch.Error || !ok {
		return "", apierrors.FromObject(event.Object)
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		c.apply(ctx, o)
	case watch.Deleted:
		c.forget(ctx, o)
	}
	return o.GetResourceVersion(), nil
}

// get applies the checkpoint of one PredictedMetric.
func (c *Checkpoints) get(ctx context.Context, key types.NamespacedName) error {
	o := emptyObject()
	err := c.Client.Get(ctx, key, o)
	switch {
	case apierrors.IsNotFound(err):
		c.Forecasts.NoCheckpoint(key)
		return nil
	case err == nil:
		c.apply(ctx, o)
	}
	return err
}

// errForeign is of a checkpoint that is not of the PredictedMetric of its name.
var errForeign = errors.New("it is not owned by the PredictedMetric of its name")

// apply has the PredictedMetric of a checkpoint go on from it.
func (c *Checkpoints) apply(ctx context.Context, o *unstructured.Unstructured) {
	key := client.ObjectKeyFromObject(o)
	adopted, err := c.restore(ctx, key, o)
	result := "Known"
	switch {
	case errors.Is(err, forecaster.ErrNotFollowed):
		return // it is read again once it is
	case err != nil:
		result = "Ignored"
		c.Forecasts.NoCheckpoint(key)
		klog.FromContext(ctx).V(1).Info("Ignored a PredictedMetricCheckpoint", "predictedmetric", key, "reason", err.Error())
	case adopted:
		result = "Adopted"
	}
	c.telemetry.restores.WithLabelValues(result).Inc()
}

func (c *Checkpoints) restore(ctx context.Context, key types.NamespacedName, o *unstructured.Unstructured) (bool, error) {
	if !c.isOwned(ctx, key, o) {
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
	adopted, err := c.Forecasts.Restore(key, data, !c.leading.Load())
	if now := c.Now(); err == nil {
		at := checkpoint.Updated.Time
		if at.After(now) {
			at = now
		}
		c.setWritten(key, at)
	}
	return adopted, err
}

// isOwned returns whether an object is of the present PredictedMetric of its name, not of one that was deleted.
func (c *Checkpoints) isOwned(ctx context.Context, key types.NamespacedName, o *unstructured.Unstructured) bool {
	var pm v1alpha1.PredictedMetric
	return c.Metrics.Get(ctx, key, &pm) == nil && keep.OwnerOf(o) == pm.UID
}

// forget has the load of a PredictedMetric learned anew whose checkpoint somebody has deleted.
func (c *Checkpoints) forget(ctx context.Context, o *unstructured.Unstructured) {
	key := client.ObjectKeyFromObject(o)
	c.mu.Lock()
	delete(c.written, key)
	c.mu.Unlock()
	if !c.isOwned(ctx, key, o) {
		return // it went with its PredictedMetric
	}
	c.Forecasts.Forget(key)
	klog.FromContext(ctx).Info("A PredictedMetricCheckpoint was deleted: learning the load anew", "predictedmetric", key)
}

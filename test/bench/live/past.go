package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/checkpoint"
	"github.com/foresail/foresail/adapter/predictedmetric"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

const (
	// learned is for how long a load that recurs was there before.
	learned = 8 * 24 * time.Hour
	// setUp is how long before the load what was learned of it is written: it says when the load will come.
	setUp = 90 * time.Second
)

// past is what is learned in seconds of a load that recurs until a time, the beginning of what
// counts being another.
func (c settings) past(p profile, params *pipeline.Params, until, begin time.Time) *pipeline.Learned {
	past := pipeline.NewLearned(params)
	options := params.LearnOptions()
	perRequest := c.serviceTime().Seconds()
	for t := until.Add(-learned); t.Before(until); t = t.Add(time.Second) {
		into := (t.Sub(begin)%p.recurs + p.recurs) % p.recurs
		rate := p.first()
		if into < p.load.Duration() {
			rate = p.load.Rate(into)
		}
		past.Add(t.UnixMilli(), rate*perRequest, options)
	}
	return past
}

// remember writes what was learned of a load that recurs as Foresail would have, and returns when
// the load is to begin.
func (s *stage) remember(ctx context.Context, p profile) (time.Time, error) {
	begins := time.Now().Add(setUp).Round(time.Second)
	cluster := s.stack.Cluster.Dynamic()
	object, err := cluster.Resource(v1alpha1.GroupVersion.WithResource("predictedmetrics")).Namespace(namespace).Get(ctx,
		appName, metav1.GetOptions{})
	if err != nil {
		return begins, err
	}
	var pm v1alpha1.PredictedMetric
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pm); err != nil {
		return begins, err
	}
	config, err := predictedmetric.ConfigOf(&pm)
	if err != nil {
		return begins, err
	}
	now := time.Now().Truncate(time.Second)
	known, err := config.Checkpoint(s.settings.past(p, &config.Params, now, begins.Add(s.settings.lead)))
	if err != nil {
		return begins, err
	}
	written, err := checkpoint.Object(types.NamespacedName{Namespace: namespace, Name: appName}, pm.UID, &known, now)
	if err != nil {
		return begins, err
	}
	_, err = cluster.Resource(v1alpha1.GroupVersion.WithResource(
		"predictedmetriccheckpoints")).Namespace(namespace).Create(ctx, written, metav1.CreateOptions{})
	return begins, err
}

// waitUntil waits until a time that must not have passed.
func waitUntil(ctx context.Context, t time.Time) error {
	wait := time.Until(t)
	if wait < 0 {
		return fmt.Errorf("the machine is too busy: ready %s after the load that recurs had to begin",
			-wait.Round(time.Second))
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
		return nil
	}
}

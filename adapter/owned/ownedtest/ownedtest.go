// Package ownedtest has what tests of those who keep an object for each PredictedMetric share.
package ownedtest

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/owned"
	"github.com/foresail/foresail/api/v1alpha1"
)

// Metrics returns the PredictedMetrics that a client lists.
func Metrics(ctx context.Context, c client.Reader) owned.Metrics {
	return func() (out []*v1alpha1.PredictedMetric, err error) {
		var list v1alpha1.PredictedMetricList
		err = c.List(ctx, &list)
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
		return out, err
	}
}

package scale

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/etcdseed"
	"github.com/foresail/foresail/test/env/foresail"
)

// startCluster runs etcd and an API server with Foresail's manifests applied, until the benchmark ends.
func startCluster(b *testing.B) *controlplane.Cluster {
	b.Helper()
	c, err := controlplane.Start(context.Background(), controlplane.Options{APIOnly: true, Progress: b.Output()})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, c.Stop()) })
	require.NoError(b, foresail.ApplyBase(b.Context(), c))
	return c
}

// fill brings a population into a cluster: PredictedMetrics and namespaces by the front door, with
// validation and defaults, Deployments and pods by the back.
func fill(ctx context.Context, c *controlplane.Cluster, p population) error {
	for i := range p.namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace(i)}}
		if _, err := c.Client().CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := seed(ctx, c.EtcdURL(), p); err != nil {
		return err
	}
	metrics := c.Dynamic().Resource(v1alpha1.GroupVersion.WithResource("predictedmetrics"))
	creating, ctx := errgroup.WithContext(ctx)
	creating.SetLimit(8)
	for i := range p.apps {
		creating.Go(func() error {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.predictedMetric(i))
			if err != nil {
				return err
			}
			_, err = metrics.Namespace(p.app(i).Namespace).Create(ctx, &unstructured.Unstructured{Object: fields},
				metav1.CreateOptions{})
			return err
		})
	}
	return creating.Wait()
}

func seed(ctx context.Context, etcd string, p population) (err error) {
	v, err := etcdseed.Open(etcd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	for i := range p.apps {
		if err := v.Put(ctx, "deployments", p.deployment(i)); err != nil {
			return err
		}
		for k := range p.podsPerApp {
			if err := v.Put(ctx, "pods", p.readyPod(i, k)); err != nil {
				return err
			}
		}
	}
	return v.Flush(ctx)
}

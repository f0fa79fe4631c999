package simulated

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/provider"
)

// jitter is the share by which the join delays of a pool vary.
const jitter = 0.2

// Registration returns the registration of the provider.
func Registration() provider.Registration {
	return provider.Registration{Name: "simulated", New: newFactory}
}

func newFactory(env provider.Environment) provider.Factory {
	return func(_ context.Context, pool *v1alpha1.WorkerPool) (provider.Parts, error) {
		o := Options{
			Client: env.Kubernetes, Pool: pool.Name, Spec: *pool.Spec.Provider.Simulated, Labels: pool.Spec.Template.Labels,
			Now: time.Now, Jitter: jitter,
		}
		for _, t := range pool.Spec.Template.Taints {
			o.Taints = append(o.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
		}
		cloud := New(o)
		return provider.Parts{Provider: cloud, Notices: Receiver{Cloud: cloud}, Run: cloud.Run}, nil
	}
}

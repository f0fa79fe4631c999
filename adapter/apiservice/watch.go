package apiservice

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watched is one object.
type watched struct {
	list client.ObjectList
	key  client.ObjectKey
}

func (r *Registrar) watches() []watched {
	var all []watched
	for _, a := range r.apis {
		all = append(all, watched{&apiregistrationv1.APIServiceList{}, client.ObjectKey{Name: a.Name()}})
	}
	if r.o.Secret != "" {
		all = append(all, watched{&corev1.SecretList{}, r.secretKey()})
	}
	return all
}

// watch has Run look again whenever an object changes, and whenever the watch begins anew. What goes wrong with it, Run
// notices too.
func (r *Registrar) watch(ctx context.Context, w watched) {
	for {
		changes, err := r.o.Client.Watch(ctx, w.list, client.InNamespace(w.key.Namespace), client.MatchingFields{"metadata.name": w.key.Name})
		if err == nil {
			stop := context.AfterFunc(ctx, changes.Stop)
			for range changes.ResultChan() {
				select {
				case r.changed <- struct{}{}:
				default: // it will look anyway
				}
			}
			stop()
		}
		if !sleep(ctx, retryAfter, nil) {
			return
		}
	}
}

package loadgen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/foresail/foresail/test/env/workload"
)

// ReadyPods are the app ports of the pods that are Running, Ready and not being deleted. It is safe
// for concurrent use.
type ReadyPods struct {
	delay    time.Duration
	informer cache.SharedIndexInformer
	synced   cache.InformerSynced // the pods there at the start have been noted

	mu      sync.Mutex
	pods    map[cache.ObjectName]string // address of each ready pod
	history []listing                   // in order of time; the first is the one in force, or the next one
}

// listing is what was ready from a time on.
type listing struct {
	from      time.Time
	addresses []string
}

// NewReadyPods returns the endpoints of the pods in a namespace (empty: all) that a label selector
// (empty: every pod) chooses. A change becomes visible once it is delay old, as behind a proxy that
// learns of it late; 0 shows it at once. The pods there at the start are visible from the start.
// There are none until Start has been called.
func NewReadyPods(client kubernetes.Interface, namespace, selector string, delay time.Duration) (*ReadyPods, error) {
	if delay < 0 {
		return nil, fmt.Errorf("loadgen: delay %v: must be 0 or above", delay)
	}
	informer, err := workload.NewPodInformer(client, namespace, selector)
	if err != nil {
		return nil, fmt.Errorf("loadgen: %w", err)
	}
	r := &ReadyPods{delay: delay, informer: informer, pods: map[cache.ObjectName]string{}}
	registration, err := informer.AddEventHandler(r.handler())
	if err != nil {
		return nil, fmt.Errorf("loadgen: watching pods: %w", err)
	}
	r.synced = registration.HasSynced
	return r, nil
}

// Start watches pods until ctx ends. It returns once the pods there are known, or with an error if
// ctx ends before.
func (r *ReadyPods) Start(ctx context.Context) error {
	go r.informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), r.synced) {
		return errors.Join(errors.New("loadgen: the pods could not be listed"), context.Cause(ctx))
	}
	return nil
}

// Endpoints returns the addresses in order.
func (r *ReadyPods) Endpoints() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	visible := time.Now().Add(-r.delay)
	for len(r.history) > 1 && !r.history[1].from.After(visible) {
		r.history = r.history[1:]
	}
	if len(r.history) == 0 {
		return nil
	}
	return r.history[0].addresses
}

func (r *ReadyPods) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(pod any, initial bool) { r.set(pod.(*corev1.Pod), initial) },
		UpdateFunc: func(_, pod any) { r.set(pod.(*corev1.Pod), false) },
		DeleteFunc: func(gone any) {
			if name, err := cache.DeletionHandlingObjectToName(gone); err == nil {
				r.change(name, "", false)
			}
		},
	}
}

func (r *ReadyPods) set(pod *corev1.Pod, initial bool) {
	address := ""
	if workload.Ready(pod) {
		if at, err := workload.AppAddress(pod); err == nil {
			address = at.String()
		}
	}
	r.change(cache.MetaObjectToName(pod), address, initial)
}

// change notes a pod's address, empty if it is not ready.
func (r *ReadyPods) change(name cache.ObjectName, address string, initial bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods[name] == address {
		return
	}
	if address == "" {
		delete(r.pods, name)
	} else {
		r.pods[name] = address
	}
	if initial {
		r.history = nil
	} else if len(r.history) == 0 {
		r.history = []listing{{}} // nothing was ready before
	}
	r.history = append(r.history, listing{time.Now(), slices.Compact(slices.Sorted(maps.Values(r.pods)))})
}

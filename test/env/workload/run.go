package workload

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Options choose the pods to serve and how.
type Options struct {
	Namespace string // empty: every namespace
	Selector  string // label selector; empty: every pod

	Model Model  // the zero value means DefaultModel; ServiceTimeAnnotation overrides its part
	Seed  uint64 // of service times, with the pod's namespace and name

	// Shares are loads that pods carry without requests; nil: none.
	Shares *Shares

	// Drain is for how long requests under way may still take when their pod goes away; new
	// connections are refused from then on. 0: every connection is cut at once.
	Drain time.Duration

	// Failed receives why a pod is not served, as the log does: at once for a pod that never will
	// be, after three seconds for one at whose address another program listens. nil: the log alone
	// has it.
	Failed func(error)
}

// Run serves the pods that options choose until ctx ends, then closes everything and returns nil. A
// pod is served from the moment it is Running and has an IP, ready or not, until it is neither. One
// that cannot be served (an address that is not loopback, a bad annotation) is logged, to the
// logger of ctx, and left alone.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	return RunWithClient(ctx, client, options)
}

// RunWithClient is Run with a client of the caller's.
func RunWithClient(ctx context.Context, client kubernetes.Interface, options Options) error {
	if options.Model == (Model{}) {
		options.Model = DefaultModel()
	}
	if err := options.Model.Validate(); err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	informer, err := NewPodInformer(client, options.Namespace, options.Selector)
	if err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fleet := newFleet(options)
	if _, err := informer.AddEventHandler(fleet.handler(ctx)); err != nil {
		return fmt.Errorf("workload: watching pods: %w", err)
	}
	// The informer returns after the last event has been handled, so that nothing is started behind the wait.
	informer.RunWithContext(ctx)
	fleet.wait()
	return nil
}

// NewPodInformer returns an informer of the pods in a namespace (empty: all) that a label selector
// (empty: every pod) chooses.
func NewPodInformer(client kubernetes.Interface, namespace, selector string) (cache.SharedIndexInformer, error) {
	if _, err := labels.Parse(selector); err != nil {
		return nil, fmt.Errorf("label selector %q: %w", selector, err)
	}
	return coreinformers.NewFilteredPodInformer(client, namespace, 0, cache.Indexers{},
		func(list *metav1.ListOptions) { list.LabelSelector = selector }), nil
}

// handler joins an informer's events to the fleet.
func (f *fleet) handler(ctx context.Context) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { f.sync(ctx, pod.(*corev1.Pod)) },
		UpdateFunc: func(_, pod any) { f.sync(ctx, pod.(*corev1.Pod)) },
		DeleteFunc: func(gone any) {
			if name, err := cache.DeletionHandlingObjectToName(gone); err == nil {
				f.stop(name)
				f.options.Shares.forget(name)
			}
		},
	}
}

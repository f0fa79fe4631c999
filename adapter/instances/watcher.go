package instances

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// resyncNever is the period of a reflector that tells nothing twice.
const resyncNever time.Duration = 0

// Watcher tells a Tracker of the pods of a cluster. No pod is kept besides: an informer would hold each of them once more,
// and in full.
type Watcher struct {
	client  kubernetes.Interface
	tracker *Tracker

	mu      sync.Mutex
	pending map[string]bool // namespaces whose pods have not been listed yet; "" is all of them
}

// NewWatcher returns a watcher of the pods of some namespaces, of all for none.
func NewWatcher(client kubernetes.Interface, tracker *Tracker, namespaces ...string) *Watcher {
	w := &Watcher{client: client, tracker: tracker, pending: map[string]bool{}}
	for _, namespace := range namespaces {
		w.pending[namespace] = true
	}
	if len(namespaces) == 0 {
		w.pending[metav1.NamespaceAll] = true
	}
	return w
}

var errNotListed = errors.New("the pods of the cluster have not been listed yet")

// Synced tells why not all pods that there were at the start are known yet, nil once they are.
func (w *Watcher) Synced() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) > 0 {
		return errNotListed
	}
	return nil
}

// Run watches until the context ends. It can be called once.
func (w *Watcher) Run(ctx context.Context) error {
	var reflectors sync.WaitGroup
	defer reflectors.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for namespace := range w.pending {
		r := cache.NewReflectorWithOptions(w.pods(namespace), &corev1.Pod{}, &store{w, namespace},
			cache.ReflectorOptions{Name: "pods", ResyncPeriod: resyncNever})
		reflectors.Go(func() { r.RunWithContext(ctx) })
	}
	return nil
}

func (w *Watcher) pods(namespace string) cache.ListerWatcher {
	pods := w.client.CoreV1().Pods(namespace)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return pods.Watch(ctx, o)
		},
	}, w.client)
}

// store is what a reflector of one namespace (or of all) stores pods in: the tracker.
type store struct {
	watcher   *Watcher
	namespace string
}

var _ cache.TransformingStore = (*store)(nil)

// Transformer implements cache.TransformingStore: while the first pods arrive, the reflector holds them in this form.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if p, ok := obj.(*corev1.Pod); ok {
			return recordOf(p), nil
		}
		return obj, nil
	}
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error {
	r, err := asRecord(obj)
	if err == nil {
		deliver(s.watcher.tracker.observe(r))
	}
	return err
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	r, err := asRecord(obj)
	if err == nil {
		deliver(s.watcher.tracker.delete(r))
	}
	return err
}

// Replace implements cache.ReflectorStore: these are all the pods that there are.
func (s *store) Replace(list []any, _ string) error {
	present := make(map[types.NamespacedName]bool, len(list))
	for _, obj := range list {
		r, err := asRecord(obj)
		if err != nil {
			return err
		}
		present[r.key] = true
		deliver(s.watcher.tracker.observe(r))
	}
	for _, gone := range s.watcher.tracker.others(s.namespace, present) {
		deliver(s.watcher.tracker.delete(gone))
	}
	s.watcher.mu.Lock()
	defer s.watcher.mu.Unlock()
	delete(s.watcher.pending, s.namespace)
	return nil
}

// Resync implements cache.ReflectorStore. There is nothing to do.
func (s *store) Resync() error { return nil }

func asRecord(obj any) (*record, error) {
	switch x := obj.(type) {
	case *record:
		return x, nil
	case *corev1.Pod:
		return recordOf(x), nil
	default:
		return nil, fmt.Errorf("watching pods: got a %T", obj)
	}
}

package podtracker

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/foresail/foresail/internal/objectcache"
)

// listLimit is how long a start waits for the pods of a namespace to be listed before it goes on without them.
const listLimit = time.Minute

// Feed has the pods of a namespace, or of all, for several parts of a process.
type Feed interface {
	Subscribe(objectcache.Store) (cancel func())
}

// Watcher feeds the pods of a cluster to a Tracker.
type Watcher struct {
	tracker *Tracker
	cancel  []func() // subscriptions

	mu      sync.Mutex
	began   time.Time
	pending map[string]error // by namespace ("" is all) whose pods have not been listed yet: why, if known
}

// NewWatcher returns a watcher of the pods of feeds, which are by namespace ("" is all).
func NewWatcher(tracker *Tracker, feeds map[string]Feed) *Watcher {
	w := &Watcher{tracker: tracker, pending: map[string]error{}}
	for namespace := range feeds {
		w.pending[namespace] = nil
	}
	for namespace, feed := range feeds {
		w.cancel = append(w.cancel, feed.Subscribe(&store{watcher: w, namespace: namespace}))
	}
	return w
}

// UnlistedError is the error of a namespace whose pods have not been listed yet.
type UnlistedError struct {
	Namespace string // "" is all of them
	Err       error  // the last failure, nil if there was none
	Lasting   bool   // for longer than a start waits
}

func (e *UnlistedError) Error() string {
	message := "the pods of the cluster have not been listed yet"
	if e.Namespace != metav1.NamespaceAll {
		message = fmt.Sprintf("the pods of the namespace %s have not been listed yet", e.Namespace)
	}
	if e.Err != nil {
		message += ": " + e.Err.Error()
	}
	return message
}

func (e *UnlistedError) Unwrap() error { return e.Err }

// Synced returns an *UnlistedError until all pods that a namespace had at the start are known.
func (w *Watcher) Synced(namespace string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, scope := range []string{namespace, metav1.NamespaceAll} {
		if err, pending := w.pending[scope]; pending {
			return w.unlisted(scope, err)
		}
	}
	return nil
}

// Started returns an *UnlistedError while the start waits for the pods of a namespace: at most a
// minute, so that one that cannot be listed does not keep the others from being served.
func (w *Watcher) Started() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for namespace, err := range w.pending {
		if e := w.unlisted(namespace, err); !e.Lasting {
			return e
		}
	}
	return nil
}

func (w *Watcher) unlisted(namespace string, err error) *UnlistedError {
	return &UnlistedError{Namespace: namespace, Err: err, Lasting: !w.began.IsZero() &&
		w.tracker.now().Sub(w.began) > listLimit}
}

// note records why the pods of a namespace cannot be listed.
func (w *Watcher) note(namespace string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, pending := w.pending[namespace]; pending && err != nil {
		w.pending[namespace] = err
	}
}

// Run watches until the context ends. It can be called once.
func (w *Watcher) Run(ctx context.Context) error {
	w.begin()
	<-ctx.Done()
	for _, cancel := range w.cancel {
		cancel()
	}
	return nil
}

func (w *Watcher) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = w.tracker.now()
}

// store passes the pods of one namespace (or of all) to the tracker.
type store struct {
	watcher   *Watcher
	namespace string

	mu     sync.Mutex
	latest podStatus // of the newest pod
}

var _ objectcache.Store = (*store)(nil)

// Transformer implements cache.TransformingStore: the reflector holds the first pods in this form.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if p, ok := obj.(*corev1.Pod); ok {
			return s.recordOf(p), nil
		}
		return obj, nil
	}
}

// recordOf has pods that come one after the other share what they have alike. In a list those of a workload do.
func (s *store) recordOf(p *corev1.Pod) *record {
	r := recordOf(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if maps.Equal(r.status.labels, s.latest.labels) {
		r.status.labels = s.latest.labels
	}
	if maps.Equal(r.status.ports, s.latest.ports) {
		r.status.ports = s.latest.ports
	}
	s.latest = r.status
	return r
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error {
	r, err := s.asRecord(obj)
	if err == nil {
		deliver(s.watcher.tracker.observe(r, true))
	}
	return err
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	r, err := s.asRecord(obj)
	if err == nil {
		deliver(s.watcher.tracker.delete(r, true))
	}
	return err
}

// Replace implements cache.ReflectorStore. The list is complete.
func (s *store) Replace(list []any, _ string) error {
	present := make(map[types.NamespacedName]bool, len(list))
	for _, obj := range list {
		r, err := s.asRecord(obj)
		if err != nil {
			return err
		}
		present[r.key] = true
		deliver(s.watcher.tracker.observe(r, false))
	}
	for _, gone := range s.watcher.tracker.others(s.namespace, present) {
		deliver(s.watcher.tracker.delete(gone, false))
	}
	s.watcher.tracker.listed(s.namespace)
	s.watcher.mu.Lock()
	defer s.watcher.mu.Unlock()
	delete(s.watcher.pending, s.namespace)
	return nil
}

// Touch implements objectcache.Store.
func (s *store) Touch(err error) {
	s.watcher.tracker.touch(s.namespace, err)
	s.watcher.note(s.namespace, err)
}

// ListAfterOutage implements objectcache.Store. The watch that is resumed brings what was missed.
func (s *store) ListAfterOutage() bool { return false }

// Resync implements cache.ReflectorStore. It does nothing.
func (s *store) Resync() error { return nil }

func (s *store) asRecord(obj any) (*record, error) {
	switch x := obj.(type) {
	case *record:
		return x, nil
	case *corev1.Pod:
		return s.recordOf(x), nil
	default:
		return nil, fmt.Errorf("watching pods: got a %T", obj)
	}
}

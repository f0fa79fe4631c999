package objectcache

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Store is filled by a Feed: with all objects first, then with each change, in one goroutine. It
// may take its time: others do not wait for it. Only what Transformer returns must not wait for
// anything. It is called as objects arrive, also by two goroutines at once, and must not change
// objects: other stores get the same ones.
type Store interface {
	cache.TransformingStore
	// Touch records whether the API answers. After a list Replace is called instead.
	Touch(err error)
	// ListAfterOutage returns whether all objects must be listed again once the API was out of
	// reach for longer than MaxOutage.
	ListAfterOutage() bool
}

// Feed passes the objects of one kind to all stores that subscribe, from one watch. It watches only
// while there are any.
type Feed struct {
	client any
	what   string
	now    func() time.Time
	like   runtime.Object
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)

	mu            sync.Mutex      // taken before those of subscriptions
	ctx           context.Context // of Run; nil while it does not run
	running       sync.WaitGroup
	subscriptions []*subscription // replaced, never changed
	stream        *stream         // nil: nothing is watched
}

// NewFeed returns a feed of objects like one. The client, which may be nil, says whether it can
// list by watching.
func NewFeed[L runtime.Object](client any, what string, now func() time.Time, like runtime.Object, of Source[L]) *Feed {
	return &Feed{
		client: client, what: what, now: now, like: like, watch: of.Watch,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, o) },
	}
}

// Pods returns a feed of the pods of a namespace, or of all.
func Pods(client kubernetes.Interface, namespace string) *Feed {
	return NewFeed(client, "pods", time.Now, &corev1.Pod{}, client.CoreV1().Pods(namespace))
}

// Nodes returns a feed of nodes.
func Nodes(client kubernetes.Interface) *Feed {
	return NewFeed(client, "nodes", time.Now, &corev1.Node{}, client.CoreV1().Nodes())
}

// Run watches until the context ends. Stores that have subscribed before share one list. It is called once.
func (f *Feed) Run(ctx context.Context) {
	f.begin(ctx)
	<-ctx.Done()
	f.end()
	f.running.Wait()
}

func (f *Feed) begin(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ctx = ctx
	for _, s := range f.subscriptions {
		f.serve(s)
	}
	f.open()
}

func (f *Feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ctx, f.stream = nil, nil
}

// Subscribe fills a store until it is cancelled or Run ends. One that comes late gets a list of its
// own and then what the others get.
func (f *Feed) Subscribe(store Store) (cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &subscription{feed: f, store: store, transform: store.Transformer(), wake: make(chan struct{}, 1)}
	f.subscriptions = append(slices.Clip(f.subscriptions), s)
	f.serve(s)
	if f.stream == nil {
		f.open()
	} else {
		f.stream.admit(s)
	}
	return func() { f.cancel(s) }
}

// cancel ends a subscription. It may be called again.
func (f *Feed) cancel(s *subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscriptions = slices.DeleteFunc(slices.Clone(f.subscriptions),
		func(other *subscription) bool { return other == s })
	if s.end != nil {
		s.end()
	}
	if len(f.subscriptions) == 0 && f.stream != nil {
		f.stream.end()
		f.stream = nil
	}
}

// serve has a store called from now on. It is called under the lock.
func (f *Feed) serve(s *subscription) {
	if f.ctx == nil {
		return
	}
	ctx, end := context.WithCancel(f.ctx)
	s.end = end
	f.running.Go(func() { s.run(ctx) })
}

// open begins to watch if there is a reason to. It is called under the lock.
func (f *Feed) open() {
	if f.ctx == nil || len(f.subscriptions) == 0 {
		return
	}
	ctx, end := context.WithCancel(f.ctx)
	s := &stream{feed: f, end: end, listing: true}
	f.stream = s
	f.running.Go(func() { s.reflect(ctx) })
}

// present returns the subscriptions there are.
func (f *Feed) present() []*subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.subscriptions
}

// stream is one run of a reflector, as the store of which it passes on what it gets.
type stream struct {
	feed *Feed
	end  context.CancelFunc

	// Under the lock of the feed.
	listing bool            // all objects are being listed, or have not been yet
	readers []*subscription // that the list is for
	lost    *time.Time      // since when the API cannot be reached
	why     error
}

var _ cache.TransformingStore = (*stream)(nil)

func (s *stream) reflect(ctx context.Context) {
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: s.list,
		WatchFuncWithContext: s.watch}, s.feed.client)
	cache.NewReflectorWithOptions(lw, s.feed.like, s, cache.ReflectorOptions{Name: s.feed.what}).RunWithContext(ctx)
}

func (s *stream) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.Continue == "" {
		s.beginList()
	}
	all, err := s.feed.list(ctx, o)
	if err != nil {
		s.touch(err) // otherwise Replace does
	}
	return all, err
}

func (s *stream) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	lists := o.SendInitialEvents != nil && *o.SendInitialEvents
	switch {
	case lists:
		s.beginList()
	case s.stale():
		return nil, apierrors.NewResourceExpired(s.feed.what + ": the API was out of reach for too long, listing again")
	}
	w, err := s.feed.watch(ctx, o)
	if err != nil || !lists {
		s.touch(err)
	}
	return w, err
}

// beginList makes the list that begins now one for all that are there.
func (s *stream) beginList() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.listing, s.readers = true, s.feed.subscriptions
}

// touch passes on whether the API answers. The end of a watch is followed by the next one within
// seconds, or by an error.
func (s *stream) touch(err error) {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if s.why = err; err == nil {
		s.lost = nil
	} else if s.lost == nil {
		s.lost = new(s.feed.now())
	}
	if s.feed.stream == s {
		for _, to := range s.feed.subscriptions {
			to.push(change{kind: touched, err: err})
		}
	}
}

// stale returns whether the API was out of reach for too long. A new watch does not bring the
// changes since then, so the objects must be listed.
func (s *stream) stale() bool {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.lost != nil && s.feed.now().Sub(*s.lost) > MaxOutage &&
		slices.ContainsFunc(s.feed.subscriptions, func(of *subscription) bool { return of.store.ListAfterOutage() })
}

// admit begins a late subscription. If all objects are being listed, Replace will see to it. It is
// called under the lock.
func (s *stream) admit(late *subscription) {
	if !s.listing {
		late.push(change{kind: joined})
	}
	if s.lost != nil {
		late.push(change{kind: touched, err: s.why})
	}
}

// version is what subscribers keep of one version of an object. Client-go identifies it by its metadata.
type version struct {
	name types.NamespacedName
	rows []any // of each subscriber; nil: it could not make one
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (v *version) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: v.name.Namespace, Name: v.name.Name}
}

func (s *stream) versionOf(obj any, readers []*subscription) (*version, error) {
	if v, ok := obj.(*version); ok {
		return v, nil
	}
	o, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("watching %s: got a %T", s.feed.what, obj)
	}
	v := &version{name: NameOf(o), rows: make([]any, len(readers))}
	for i, to := range readers {
		row, err := to.transform(obj)
		if err != nil {
			utilruntime.HandleError(err)
			continue
		}
		v.rows[i] = row
	}
	return v, nil
}

func (s *stream) listReaders() []*subscription {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.readers
}

// Transformer implements cache.TransformingStore: a reflector holds the first objects in this form.
func (s *stream) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.versionOf(obj, s.listReaders()) }
}

// Add implements cache.ReflectorStore.
func (s *stream) Add(obj any) error { return s.pass(updated, obj) }

// Update implements cache.ReflectorStore.
func (s *stream) Update(obj any) error { return s.pass(updated, obj) }

// Delete implements cache.ReflectorStore.
func (s *stream) Delete(obj any) error { return s.pass(deleted, obj) }

// Resync implements cache.ReflectorStore. It does nothing.
func (s *stream) Resync() error { return nil }

// pass passes on an event. Who subscribes meanwhile lists later, and so sees it too.
func (s *stream) pass(kind changeKind, obj any) error {
	readers := s.feed.present()
	v, err := s.versionOf(obj, readers)
	if err != nil {
		return err
	}
	resourceVersion := ""
	if o, ok := obj.(metav1.Object); ok {
		resourceVersion = o.GetResourceVersion()
	}
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if s.feed.stream != s {
		return nil
	}
	for i, to := range readers {
		if v.rows[i] != nil {
			to.push(change{kind: kind, row: v.rows[i], version: resourceVersion})
		}
	}
	return nil
}

// Replace implements cache.ReflectorStore. The list is complete. Who subscribed after it began lists again.
func (s *stream) Replace(list []any, version string) error {
	readers := s.listReaders()
	rows, err := s.rowsOf(list, readers)
	if err != nil {
		return err
	}
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if s.feed.stream != s {
		return nil
	}
	s.listing, s.lost, s.why = false, nil, nil
	for _, to := range s.feed.subscriptions {
		if i := slices.Index(readers, to); i >= 0 {
			to.restart(change{kind: replaced, rows: rows[i], version: version})
		} else {
			to.restart(change{kind: joined})
		}
	}
	return nil
}

// rowsOf returns the rows of each reader. It lets go of the objects on the way.
func (s *stream) rowsOf(list []any, readers []*subscription) ([][]any, error) {
	rows := make([][]any, len(readers))
	for i := range rows {
		rows[i] = make([]any, 0, len(list))
	}
	for i, obj := range list {
		v, err := s.versionOf(obj, readers)
		if err != nil {
			return nil, err
		}
		list[i] = nil
		for k, row := range v.rows {
			if row != nil {
				rows[k] = append(rows[k], row)
			}
		}
	}
	return rows, nil
}

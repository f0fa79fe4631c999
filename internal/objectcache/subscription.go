package objectcache

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// maxQueued is how many changes may wait for a store. One that is further behind forgets them and lists.
	maxQueued = 1 << 16
	// pageSize is how many objects a late subscriber lists at once.
	pageSize = 500
)

// errBehind is why a store is not trusted for long that has lost changes and has not listed since.
var errBehind = errors.New("too many changes came at once, listing again")

// change is something that a store has yet to be told.
type change struct {
	kind    changeKind
	row     any    // of updated and deleted
	version string // the resource version of these, and of a list
	rows    []any  // of replaced
	err     error  // of touched, and of joined where changes are lost
}

type changeKind int

const (
	updated changeKind = iota
	deleted
	replaced
	touched
	joined // the store needs a list of its own
)

// subscription is one store of a feed, and the changes that wait for it.
type subscription struct {
	feed      *Feed
	store     Store
	transform func(any) (any, error)
	end       context.CancelFunc // nil: it does not run. Under the lock of the feed.
	wake      chan struct{}
	since     string // the resource version of the last list of its own, until a newer change; of run alone

	mu      sync.Mutex
	queue   []change
	head    int                // of the queue
	endList context.CancelFunc // nil: it is not listing
}

// push adds a change. If too many wait they are forgotten, and a list follows. A list that has
// begun is not ended for that: if each took longer than the queue takes to fill, none would come to
// its end.
func (s *subscription) push(c change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue)-s.head < maxQueued {
		s.compact()
		s.queue = append(s.queue, c)
	} else if s.queue, s.head = []change{{kind: joined, err: errBehind}}, 0; c.kind == touched {
		s.queue = append(s.queue, c)
	}
	s.notify()
}

// compact lets go of the consumed front before the queue would grow, if that is half of it or more.
func (s *subscription) compact() {
	if len(s.queue) == cap(s.queue) && 2*s.head >= len(s.queue) {
		s.queue, s.head = slices.Delete(s.queue, 0, s.head), 0
	}
}

// restart replaces the changes by one after which all objects are known.
func (s *subscription) restart(c change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.head = []change{c}, 0
	if s.endList != nil {
		s.endList()
	}
	s.notify()
}

func (s *subscription) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *subscription) run(ctx context.Context) {
	for ctx.Err() == nil {
		c, ok := s.pop()
		if ok {
			s.apply(ctx, c)
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		}
	}
}

func (s *subscription) pop() (change, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head == len(s.queue) {
		return change{}, false
	}
	c := s.queue[s.head]
	s.queue[s.head] = change{}
	if s.head++; s.head == len(s.queue) {
		if s.queue, s.head = s.queue[:0], 0; cap(s.queue) > pageSize {
			s.queue = nil
		}
	}
	return c, true
}

func (s *subscription) apply(ctx context.Context, c change) {
	var err error
	switch c.kind {
	case touched:
		s.store.Touch(c.err)
	case joined:
		if c.err != nil {
			s.store.Touch(c.err)
		}
		s.list(ctx)
	case replaced:
		if s.isOlder(c.version) {
			s.list(ctx)
			return
		}
		s.since = ""
		if err = s.store.Replace(c.rows, ""); err != nil {
			s.list(ctx)
		}
	case updated:
		if s.isNews(c.version) {
			err = s.store.Update(c.row)
		}
	case deleted:
		if s.isNews(c.version) {
			err = s.store.Delete(c.row)
		}
	}
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Cannot store what is watched", "of", s.feed.what)
	}
}

// isNews returns whether a change came after the list of its own. Resource versions that cannot be
// compared are news.
func (s *subscription) isNews(version string) bool {
	if s.since == "" {
		return true
	}
	if order, err := resourceversion.CompareResourceVersion(version, s.since); err == nil && order <= 0 {
		return false
	}
	s.since = ""
	return true
}

// isOlder returns whether a list for all is older than the list of its own. It may be, as an API
// server that is behind answers with all that the shared watch has seen.
func (s *subscription) isOlder(version string) bool {
	if s.since == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, s.since)
	return err == nil && order < 0
}

// list lists for this store alone, until that succeeds or a list for all comes first. Changes wait meanwhile.
func (s *subscription) list(ctx context.Context) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	if !s.beginList(end) {
		return
	}
	defer s.finishList()
	// as reflectors
	retry := wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6, Cap: 30 * time.Second}
	for {
		err := s.tryList(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		s.store.Touch(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry.Step()):
		}
	}
}

// beginList returns false if all objects are to come anyway.
func (s *subscription) beginList(end context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head < len(s.queue) && (s.queue[s.head].kind == replaced || s.queue[s.head].kind == joined) {
		return false
	}
	s.endList = end
	return true
}

func (s *subscription) finishList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endList = nil
}

func (s *subscription) tryList(ctx context.Context) error {
	rows, version, err := s.collect(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	s.since = version
	return s.store.Replace(rows, version)
}

// collect lists page by page: of all objects only the rows are held.
func (s *subscription) collect(ctx context.Context) (rows []any, version string, err error) {
	for o := (metav1.ListOptions{Limit: pageSize}); ; {
		page, err := s.feed.list(ctx, o)
		if err != nil {
			return nil, "", err
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return nil, "", err
		}
		err = meta.EachListItemWithAlloc(page, func(obj runtime.Object) error {
			row, err := s.transform(obj)
			rows = append(rows, row)
			return err
		})
		if err != nil {
			return nil, "", err
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return rows, list.GetResourceVersion(), nil
		}
	}
}

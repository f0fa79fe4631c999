package objectcache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// liveAPI is an API of Nodes with resource versions, pages, watches that are resumed, and lists by watching.
type liveAPI struct {
	streams bool // it can list by watching

	mu      sync.Mutex
	version int
	nodes   map[string]*corev1.Node
	log     []watch.Event // by resource version, from 1 on
	oldest  int           // watches from before it are refused
	pages   map[string][]corev1.Node
	open    map[*watch.FakeWatcher]bool
	muted   bool             // watches are open and bring nothing
	down    bool             // nothing is answered
	hold    chan struct{}    // pages after the first one wait for it
	refuse  bool             // lists of late stores are refused
	lagging *corev1.NodeList // what lists for all are answered with, as by an API server that is behind; nil: the truth

	lists, paged, watches int // paged are the lists of late stores
}

func newLiveAPI(names ...string) *liveAPI {
	a := &liveAPI{nodes: map[string]*corev1.Node{}, pages: map[string][]corev1.Node{},
		open: map[*watch.FakeWatcher]bool{}}
	for _, name := range names {
		a.set(name)
	}
	return a
}

func (a *liveAPI) do(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// set makes a node, or another version of it.
func (a *liveAPI) set(name string) {
	a.do(func() {
		kind := watch.Modified
		if a.nodes[name] == nil {
			kind = watch.Added
		}
		a.version++
		a.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			ResourceVersion: strconv.Itoa(a.version)}}
		a.record(kind, a.nodes[name])
	})
}

func (a *liveAPI) remove(name string) {
	a.do(func() {
		n := a.nodes[name]
		if n == nil {
			return
		}
		a.version++
		delete(a.nodes, name)
		n = n.DeepCopy()
		n.ResourceVersion = strconv.Itoa(a.version)
		a.record(watch.Deleted, n)
	})
}

func (a *liveAPI) record(kind watch.EventType, n *corev1.Node) {
	a.log = append(a.log, watch.Event{Type: kind, Object: n})
	for w := range a.open {
		switch {
		case w.IsStopped():
			delete(a.open, w)
		case !a.muted:
			w.Action(kind, n)
		}
	}
}

// unmute brings what watches have missed.
func (a *liveAPI) unmute(since int) {
	a.do(func() {
		a.muted = false
		for w := range a.open {
			for _, e := range a.log[since:] {
				w.Action(e.Type, e.Object)
			}
		}
	})
}

// cut ends all watches, and answers nothing until mend.
func (a *liveAPI) cut() {
	a.do(func() {
		a.down = true
		for w := range a.open {
			w.Stop()
		}
		clear(a.open)
	})
}

func (a *liveAPI) mend() { a.do(func() { a.down = false }) }

// expire ends all watches. None can be resumed.
func (a *liveAPI) expire() {
	a.cut()
	a.do(func() {
		a.version++ // something else has changed
		a.log = append(a.log, watch.Event{Type: watch.Bookmark,
			Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(a.version)}}})
		a.down, a.oldest = false, a.version
	})
}

func (a *liveAPI) truth() map[string]string {
	out := map[string]string{}
	a.do(func() {
		for name, n := range a.nodes {
			out[name] = n.ResourceVersion
		}
	})
	return out
}

func (a *liveAPI) List(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error) {
	if err := a.wait(ctx, o); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, syscall.ECONNREFUSED
	}
	if a.refuse && o.ResourceVersion == "" && o.Continue == "" {
		return nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no pages"))
	}
	if a.lagging != nil && o.ResourceVersion != "" {
		a.lists++
		return a.lagging, nil
	}
	left, version := a.pages[o.Continue], strconv.Itoa(a.version)
	if o.Continue == "" {
		for _, name := range slices.Sorted(maps.Keys(a.nodes)) {
			left = append(left, *a.nodes[name])
		}
		if o.ResourceVersion == "" {
			a.paged++
		} else {
			a.lists++
		}
	} else {
		version, _, _ = strings.Cut(o.Continue, "/")
	}
	page := left[:min(len(left), max(int(o.Limit), 1))]
	list := &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: page}
	if left = left[len(page):]; len(left) > 0 {
		list.Continue = fmt.Sprintf("%s/%d/%d", version, len(left), len(a.pages))
		a.pages[list.Continue] = left
	}
	return list, nil
}

func (a *liveAPI) wait(ctx context.Context, o metav1.ListOptions) error {
	a.mu.Lock()
	hold := a.hold
	a.mu.Unlock()
	if hold == nil || o.Continue == "" {
		return nil
	}
	select {
	case <-hold:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *liveAPI) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, _ := strconv.Atoi(o.ResourceVersion)
	streams := o.SendInitialEvents != nil
	switch {
	case a.down:
		return nil, syscall.ECONNREFUSED
	case streams && !a.streams:
		return nil, apierrors.NewMethodNotSupported(corev1.Resource("nodes"), "watch-list")
	case !streams && since < a.oldest:
		return nil, apierrors.NewResourceExpired("too old")
	}
	a.watches++
	w := watch.NewFakeWithChanSize(2*maxQueued, false)
	a.open[w] = true
	if streams {
		for _, n := range a.nodes {
			w.Add(n)
		}
		w.Action(watch.Bookmark, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(a.version),
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
		return w, nil
	}
	for _, e := range a.log[since:] {
		w.Action(e.Type, e.Object)
	}
	return w, nil
}

// versions is a table of the resource versions of nodes.
type versions struct {
	*Table[string, *corev1.Node, string]
	mu      sync.Mutex
	backend []string // changes that went back in time
}

func newVersions() *versions {
	v := &versions{}
	v.Table = New(Options[string, *corev1.Node, string]{
		What: "nodes", Lock: &v.mu, Now: time.Now, Key: func(n *corev1.Node) string { return n.Name },
		Keep: func(n *corev1.Node) (string, bool) { return n.ResourceVersion, true },
		Changed: func(name, before, after string) {
			was, _ := strconv.Atoi(before)
			if is, _ := strconv.Atoi(after); after != "" && is < was {
				v.backend = append(v.backend, fmt.Sprintf("%s from %s to %s", name, before, after))
			}
		},
	})
	return v
}

func (v *versions) rows() map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.Rows())
}

func (v *versions) state() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.State(time.Now())
}

// withFeed runs a test in a bubble, with a feed of an API that some tables subscribe to before it runs.
func withFeed(t *testing.T, api *liveAPI, tables int, test func(t *testing.T, f *Feed, tables []*versions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := NewFeed(nil, "nodes", time.Now, &corev1.Node{}, api)
		var all []*versions
		for range tables {
			all = append(all, newVersions())
			f.Subscribe(all[len(all)-1])
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { f.Run(ctx) })
		defer running.Wait()
		defer cancel()
		pass(time.Minute)
		test(t, f, all)
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Stores that subscribe before the start cost the API as much as one does.
func TestStoresShareAWatch(t *testing.T) {
	for name, streams := range map[string]bool{"list": false, "list by watching": true} {
		t.Run(name, func(t *testing.T) {
			api := newLiveAPI("a", "b", "c")
			api.streams = streams
			withFeed(t, api, 3, func(t *testing.T, _ *Feed, tables []*versions) {
				api.set("a")
				api.set("d")
				api.remove("b")
				pass(time.Second)
				for _, v := range tables {
					require.NoError(t, v.state())
					assert.Equal(t, api.truth(), v.rows())
				}
				assert.Equal(t, 1, api.watches)
				assert.Equal(t, map[bool]int{true: 0, false: 1}[streams], api.lists)
				assert.Zero(t, api.paged)
			})
		})
	}
}

// A late store gets everything by a list of its own, with what happens meanwhile, and nothing older
// than it has seen.
func TestLateStoresSeeEverything(t *testing.T) {
	api := newLiveAPI()
	for i := range 2*pageSize + 1 {
		api.set(fmt.Sprintf("n-%04d", i))
	}
	withFeed(t, api, 1, func(t *testing.T, f *Feed, tables []*versions) {
		lagging := api.version
		api.do(func() { api.muted = true })
		api.set("n-0001") // the late one lists it, and is told of it again
		api.set("n-0001")
		api.remove("n-0002")
		api.do(func() { api.hold = make(chan struct{}) })
		late := newVersions()
		defer f.Subscribe(late)()
		pass(time.Second)
		require.ErrorIs(t, late.state(), ErrUnsynced)
		api.set("n-0003")
		api.remove("n-1000")
		api.set("new")
		close(api.hold)
		pass(time.Second)
		require.NoError(t, late.state())
		assert.Len(t, late.rows(), 2*pageSize, "as of the first page")
		api.unmute(lagging)
		pass(time.Second)
		for _, v := range append(tables, late) {
			assert.Equal(t, api.truth(), v.rows())
			assert.Empty(t, v.backend)
		}
		assert.Equal(t, 1, api.paged)
		assert.Equal(t, 1, api.lists)
		assert.Equal(t, 1, api.watches, "the others keep theirs")
	})
}

// A list for all may be older than what a late store has listed, as from an API server that is behind.
func TestLateStoresDoNotGoBack(t *testing.T) {
	api := newLiveAPI("a", "b")
	withFeed(t, api, 1, func(t *testing.T, f *Feed, tables []*versions) {
		old, err := api.List(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: pageSize})
		require.NoError(t, err)
		api.do(func() { api.muted = true })
		api.set("a")
		api.remove("b")
		late := newVersions()
		defer f.Subscribe(late)()
		pass(time.Second)
		require.Equal(t, api.truth(), late.rows())
		lists := api.lists
		api.expire()
		api.do(func() { api.lagging = old })
		// between two lists of the reflector, all of which are too old to watch from, may be more
		// than MaxOutage
		pass(20 * time.Second)
		require.Greater(t, api.lists, lists, "all are listed again")
		assert.Len(t, tables[0].rows(), 2, "it knows no better")
		assert.Equal(t, api.truth(), late.rows())
		assert.NoError(t, late.state())
		api.do(func() { api.lagging, api.muted = nil, false })
		pass(time.Minute)
		for _, v := range append(tables, late) {
			assert.Equal(t, api.truth(), v.rows())
			assert.Empty(t, v.backend)
		}
	})
}

// A store that is never quite up to date does not keep the changes that it has seen.
func TestQueuesForgetWhatIsConsumed(t *testing.T) {
	s := &subscription{wake: make(chan struct{}, 1)}
	for range 10 {
		s.push(change{kind: updated})
	}
	for i := range 100_000 {
		s.push(change{kind: updated, version: fmt.Sprint(i)})
		_, ok := s.pop()
		require.True(t, ok)
	}
	assert.Less(t, cap(s.queue), 100)
	for i := range 10 {
		c, ok := s.pop()
		require.True(t, ok)
		assert.Equal(t, fmt.Sprint(100_000-10+i), c.version, "in order")
	}
	_, ok := s.pop()
	assert.False(t, ok)
}

// A list that takes longer than a queue takes to overflow comes to its end, and until then the
// store is not trusted for long.
func TestListsThatAreOvertakenEnd(t *testing.T) {
	api := newLiveAPI("a")
	for i := range pageSize { // a second page
		api.set(fmt.Sprint("n-", i))
	}
	withFeed(t, api, 0, func(t *testing.T, f *Feed, _ []*versions) {
		s := &slow{versions: newVersions()}
		defer f.Subscribe(s)()
		pass(time.Second)
		require.NoError(t, s.state())
		hold := make(chan struct{})
		s.hold.Store(&hold)
		overflow := func() {
			for range maxQueued + 10 {
				api.set("a")
			}
			pass(time.Second)
		}
		overflow()
		api.do(func() { api.hold = make(chan struct{}) })
		s.hold.Store(nil)
		close(hold)
		pass(time.Second)
		require.Equal(t, 1, api.paged)
		require.NoError(t, s.state(), "it is behind for a moment")
		for range 2 {
			overflow()
		}
		assert.Equal(t, 1, api.paged, "the list goes on")
		pass(MaxOutage)
		require.ErrorContains(t, s.state(), "too many changes")
		close(api.hold)
		pass(time.Second)
		assert.Equal(t, 2, api.paged, "and once more, as changes were lost meanwhile")
		assert.NoError(t, s.state())
		assert.Equal(t, api.truth(), s.rows())
		assert.Empty(t, s.backend)
	})
}

// A late store whose list fails says why, and tries again.
func TestLateStoresListAgain(t *testing.T) {
	api := newLiveAPI("a")
	withFeed(t, api, 1, func(t *testing.T, f *Feed, tables []*versions) {
		api.do(func() { api.refuse = true })
		late := newVersions()
		defer f.Subscribe(late)()
		pass(time.Minute)
		require.ErrorIs(t, late.state(), ErrUnsynced)
		require.ErrorContains(t, late.state(), "no pages")
		require.NoError(t, tables[0].state())
		api.do(func() { api.refuse = false })
		pass(time.Minute)
		require.NoError(t, late.state())
		assert.Equal(t, api.truth(), late.rows())
	})
}

// Who comes while all is listed again, or while the API is down, knows as much as the others.
func TestStoresMayComeAtAnyTime(t *testing.T) {
	api := newLiveAPI("a", "b")
	withFeed(t, api, 0, func(t *testing.T, f *Feed, tables []*versions) {
		assert.Zero(t, api.lists+api.watches, "nobody asks")
		api.cut()
		for range 2 {
			tables = append(tables, newVersions())
			defer f.Subscribe(tables[len(tables)-1])()
			pass(time.Second)
		}
		for _, v := range tables {
			require.ErrorIs(t, v.state(), ErrUnsynced)
			require.ErrorIs(t, v.state(), syscall.ECONNREFUSED)
		}
		api.do(func() { api.down, api.hold = false, make(chan struct{}) })
		for i := range pageSize { // a second page
			api.set(fmt.Sprint("n-", i))
		}
		pass(time.Minute)
		late := newVersions()
		tables = append(tables, late)
		defer f.Subscribe(late)()
		api.remove("a")
		close(api.hold)
		pass(time.Minute)
		for _, v := range tables {
			require.NoError(t, v.state())
			assert.Equal(t, api.truth(), v.rows())
		}
		assert.Equal(t, 1, api.watches)
	})
}

// slow is a store that can be held up.
type slow struct {
	*versions
	hold atomic.Pointer[chan struct{}]
}

func (s *slow) Update(obj any) error {
	if hold := s.hold.Load(); hold != nil {
		<-*hold
	}
	return s.versions.Update(obj)
}

// A store that takes its time delays itself. If it is too far behind it lists.
func TestSlowStoresDelayNobody(t *testing.T) {
	api := newLiveAPI("a", "b")
	withFeed(t, api, 2, func(t *testing.T, f *Feed, tables []*versions) {
		s := &slow{versions: newVersions()}
		defer f.Subscribe(s)()
		pass(time.Second)
		lists := api.paged
		follow := func(changes int) {
			hold := make(chan struct{})
			s.hold.Store(&hold)
			for range changes {
				api.set("a")
			}
			pass(time.Second)
			for _, v := range tables {
				assert.Equal(t, api.truth(), v.rows())
			}
			assert.NotEqual(t, api.truth(), s.rows())
			s.hold.Store(nil)
			close(hold)
			pass(time.Second)
			assert.Equal(t, api.truth(), s.rows())
			assert.NoError(t, s.state())
		}
		follow(1000)
		assert.Equal(t, lists, api.paged)
		follow(maxQueued + 10)
		assert.Equal(t, lists+1, api.paged)
		assert.Equal(t, 1, api.watches)
		assert.Empty(t, s.backend)
	})
}

// broken is a store that fails.
type broken struct{ *versions }

func (broken) Replace([]any, string) error { return errors.New("broken") }
func (broken) Update(any) error            { return errors.New("broken") }

func TestFailingStoresStopNobody(t *testing.T) {
	withoutErrorHandlers(t)
	api := newLiveAPI("a")
	withFeed(t, api, 1, func(t *testing.T, f *Feed, tables []*versions) {
		defer f.Subscribe(broken{newVersions()})()
		pods := newPhases()
		defer f.Subscribe(pods)()
		api.expire()
		pass(time.Minute)
		api.set("b")
		pass(time.Second)
		require.NoError(t, tables[0].state())
		assert.Equal(t, api.truth(), tables[0].rows())
		assert.Empty(t, pods.Rows())
	})
}

func withoutErrorHandlers(t *testing.T) {
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
}

// patient is a store that needs no list after an outage.
type patient struct{ *versions }

func (patient) ListAfterOutage() bool { return false }

// All see an outage, each trusts what it has for as long as it would alone, and one list ends it for all.
func TestOutagesAreSeenByAll(t *testing.T) {
	api := newLiveAPI("a", "b")
	withFeed(t, api, 2, func(t *testing.T, f *Feed, tables []*versions) {
		early := newVersions()
		early.MaxOutage = 10 * time.Second
		defer f.Subscribe(early)()
		pass(time.Second)
		api.cut()
		pass(20 * time.Second)
		require.ErrorContains(t, early.state(), "nodes: out of touch")
		require.NoError(t, tables[0].state())
		late := newVersions()
		defer f.Subscribe(late)()
		pass(5 * time.Minute)
		api.remove("a")
		for _, v := range append(tables, early) {
			require.ErrorContains(t, v.state(), "nodes: out of touch")
		}
		require.ErrorIs(t, late.state(), ErrUnsynced)
		require.ErrorIs(t, late.state(), syscall.ECONNREFUSED)
		lists := api.lists
		api.mend()
		pass(2 * time.Minute)
		for _, v := range append(tables, early, late) {
			require.NoError(t, v.state())
			assert.Equal(t, api.truth(), v.rows())
		}
		assert.Equal(t, lists+1, api.lists)
		assert.Equal(t, 2, api.watches)
	})
}

// A short outage, or one that nobody minds, ends with the changes since.
func TestOutagesMayEndWithoutAList(t *testing.T) {
	for name, c := range map[string]struct {
		store  func(*versions) Store
		outage time.Duration
	}{
		"a short one":        {func(v *versions) Store { return v }, 5 * time.Second},
		"one nobody minds":   {func(v *versions) Store { return patient{v} }, 5 * time.Minute},
		"the end of a watch": {func(v *versions) Store { return v }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			api := newLiveAPI("a", "b")
			withFeed(t, api, 0, func(t *testing.T, f *Feed, _ []*versions) {
				v := newVersions()
				defer f.Subscribe(c.store(v))()
				pass(time.Second)
				api.cut()
				pass(c.outage)
				api.remove("a")
				api.mend()
				pass(2 * time.Minute)
				require.NoError(t, v.state())
				assert.Equal(t, api.truth(), v.rows())
				assert.Equal(t, 1, api.lists)
				assert.Zero(t, api.paged)
			})
		})
	}
}

// An expired resource version costs one list, not one for each store.
func TestExpiredWatchesAreListedOnce(t *testing.T) {
	api := newLiveAPI("a", "b")
	withFeed(t, api, 3, func(t *testing.T, _ *Feed, tables []*versions) {
		api.do(func() { api.muted = true })
		api.remove("a")
		api.do(func() { api.muted = false })
		api.expire()
		pass(time.Minute)
		for _, v := range tables {
			require.NoError(t, v.state())
			assert.Equal(t, api.truth(), v.rows())
		}
		assert.Equal(t, 2, api.lists)
		assert.Zero(t, api.paged)
	})
}

// The watch ends with the last subscription, and comes again with the next.
func TestNothingIsWatchedForNobody(t *testing.T) {
	api := newLiveAPI("a")
	withFeed(t, api, 0, func(t *testing.T, f *Feed, _ []*versions) {
		for i := range 2 {
			first, second := newVersions(), newVersions()
			leave, leaveToo := f.Subscribe(first), f.Subscribe(second)
			pass(time.Minute)
			assert.Equal(t, api.truth(), second.rows())
			leave()
			leave()
			api.set("a")
			pass(time.Minute)
			assert.NotEqual(t, api.truth(), first.rows())
			assert.Equal(t, api.truth(), second.rows())
			leaveToo()
			pass(time.Minute)
			assert.Nil(t, f.stream)
			assert.Equal(t, i+1, api.watches)
			api.cut() // a watch that has ended ends nothing
			api.mend()
		}
	})
}

// Whatever happens in whatever order, all that are subscribed end with what there is.
func TestFeedsAtRandom(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			api := newLiveAPI()
			api.streams = seed%2 == 0
			for i := range random.IntN(3 * pageSize) {
				api.set(fmt.Sprint("n-", i))
			}
			withFeed(t, api, random.IntN(3), func(t *testing.T, f *Feed, tables []*versions) {
				type late struct {
					*versions
					leave func()
				}
				var there []late // in order, so that the seed says who leaves
				for range 200 {
					disturb(random, api)
					switch random.IntN(10) {
					case 0:
						v := newVersions()
						there = append(there, late{v, f.Subscribe(v)})
					case 1:
						if len(there) > 0 {
							i := random.IntN(len(there))
							there[i].leave()
							there = slices.Delete(there, i, i+1)
						}
					}
					pass(time.Duration(random.IntN(2000)) * time.Millisecond)
				}
				api.do(func() { api.down, api.refuse = false, false })
				pass(3 * time.Minute)
				for _, l := range there {
					tables = append(tables, l.versions)
				}
				for _, v := range tables {
					assert.NoError(t, v.state())
					assert.True(t, maps.Equal(api.truth(), v.rows()))
					assert.Empty(t, v.backend)
				}
			})
		})
	}
}

func disturb(random *rand.Rand, api *liveAPI) {
	for range random.IntN(20) {
		name := fmt.Sprint("n-", random.IntN(4*pageSize))
		if random.IntN(2) == 0 {
			api.set(name)
		} else {
			api.remove(name)
		}
	}
	switch random.IntN(20) {
	case 0:
		api.cut()
	case 1, 2:
		api.mend()
	case 3:
		api.expire()
	case 4:
		api.do(func() { api.refuse = !api.refuse })
	}
}

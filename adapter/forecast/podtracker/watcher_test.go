package podtracker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/foresail/foresail/internal/objectcache"
)

// watched is a watcher with the feeds that it has its pods from.
type watched struct {
	*Watcher
	feeds map[string]*objectcache.Feed
}

func watcherOf(client kubernetes.Interface, tracker *Tracker, namespaces ...string) *watched {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	w, feeds := &watched{feeds: map[string]*objectcache.Feed{}}, map[string]Feed{}
	for _, namespace := range namespaces {
		w.feeds[namespace] = objectcache.Pods(client, namespace)
		feeds[namespace] = w.feeds[namespace]
	}
	w.Watcher = NewWatcher(tracker, feeds)
	return w
}

func (w *watched) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for _, feed := range w.feeds {
		running.Go(func() { feed.Run(ctx) })
	}
	return w.Watcher.Run(ctx)
}

// What a watcher learns from the API, its tracker knows.
func TestWatcherFeedsTracker(t *testing.T) {
	other := podWith(named("x"), uid("uid-x"), readyAt(20))
	other.Namespace = "other"
	for name, namespaces := range map[string][]string{"all namespaces": nil, "some": {"shop", "empty"}} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(podWith(readyAt(20)), podWith(named("b")), other)
			tracker := NewTracker(Options{})
			fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
			active := make(chan []string, 10)
			fleet.Watch(func() { active <- activeIDs(fleet) })
			w := watcherOf(client, tracker, namespaces...)
			require.ErrorContains(t, w.Synced("shop"), "have not been listed yet")
			require.Error(t, w.Started())
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- w.Run(ctx) }()
			assert.Equal(t, []string{"uid-a"}, <-active)
			require.Eventually(t, func() bool { return w.Started() == nil }, 10*time.Second, time.Millisecond)
			require.NoError(t, w.Synced("shop"))
			assert.Equal(t, namespaces == nil, len(tracker.others("other", nil)) == 1,
				"pods of other namespaces are not watched")

			pods := client.CoreV1().Pods("shop")
			_, err := pods.UpdateStatus(t.Context(), podWith(named("b"), readyAt(40)), metav1.UpdateOptions{})
			require.NoError(t, err)
			assert.Equal(t, []string{"uid-a", "uid-b"}, <-active)
			require.NoError(t, pods.Delete(t.Context(), "a", metav1.DeleteOptions{}))
			assert.Equal(t, []string{"uid-b"}, <-active)
			assert.Equal(t, map[string]int32{"metrics": 9090}, fleet.Active()[0].Ports)
			cancel()
			require.NoError(t, <-ended)
		})
	}
}

// A reflector that has lost its place lists again: what is not there any more has been deleted meanwhile.
func TestWatcherListsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := NewTracker(Options{})
		fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
		s := &store{watcher: NewWatcher(tracker, nil), namespace: metav1.NamespaceAll}
		transform := s.Transformer()
		reduced, err := transform(podWith(readyAt(20)))
		require.NoError(t, err)
		accessor, err := meta.Accessor(reduced)
		require.NoError(t, err, "client-go finds the key through it")
		assert.Equal(t, "shop/a", accessor.GetNamespace()+"/"+accessor.GetName())

		require.NoError(t, s.Add(reduced))
		require.NoError(t, s.Add(podWith(named("b"), readyAt(20))))
		require.NoError(t, s.Replace([]any{podWith(named("b"), readyAt(20)), podWith(named("c"), readyAt(30))}, "7"))
		var names []string
		for _, i := range fleet.Active() {
			names = append(names, i.Pod.Name)
		}
		assert.Equal(t, []string{"b", "c"}, names)
		require.NoError(t, s.Delete(podWith(named("b"))))
		assert.Len(t, fleet.Active(), 1)

		node, err := transform(&corev1.Node{})
		require.NoError(t, err)
		require.ErrorContains(t, s.Update(node), "*v1.Node")
		require.Error(t, s.Replace([]any{node}, "8"))
		require.Error(t, s.Delete(node))
		require.NoError(t, s.Resync())
	})
}

// Pods share the strings of their labels, however they came in.
func TestRecordsShareStrings(t *testing.T) {
	assert.Equal(t, map[string]string{"app": "checkout"}, recordOf(podWith()).status.labels)
	assert.Nil(t, objectcache.InternLabels(nil))
}

// One namespace whose pods may not be listed must not keep the others from being served.
func TestForbiddenNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(podWith(readyAt(20)))
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no role"))
		client.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return a.GetNamespace() == "secret", nil, forbidden
		})
		w := watcherOf(client, NewTracker(Options{}), "shop", "secret")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(30 * time.Second) // virtual time
		require.NoError(t, w.Synced("shop"))
		var unlisted *UnlistedError
		require.ErrorAs(t, w.Synced("secret"), &unlisted)
		assert.False(t, unlisted.Lasting)
		assert.ErrorIs(t, unlisted, forbidden)
		assert.ErrorContains(t, unlisted, "the pods of the namespace secret have not been listed yet: ")
		require.Error(t, w.Started())
		time.Sleep(40 * time.Second) // virtual time
		require.ErrorAs(t, w.Synced("secret"), &unlisted)
		assert.True(t, unlisted.Lasting)
		require.NoError(t, w.Started())
		cancel()
		require.NoError(t, <-ended)
	})
}

// A watcher whose API cannot be reached knows since when it does not see changes of pods.
func TestWatcherLosesThePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(podWith(readyAt(20)))
		var down atomic.Bool
		watches := make(chan *apiwatch.FakeWatcher, 100)
		refused := errors.New("connection refused")
		client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, refused
		})
		client.PrependWatchReactor("pods", func(clienttesting.Action) (bool, apiwatch.Interface, error) {
			if down.Load() {
				return true, nil, refused
			}
			w := apiwatch.NewFake()
			watches <- w
			return true, w, nil
		})
		tracker := NewTracker(Options{})
		fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
		w := watcherOf(client, tracker, "shop")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(time.Minute) // virtual time
		since, why := fleet.Lost()
		require.NoError(t, why)
		assert.Zero(t, since)
		assert.Equal(t, PodReady, fleet.PodState("a"))

		down.Store(true)
		began := time.Now()
		(<-watches).Stop()
		time.Sleep(2 * time.Minute) // virtual time
		since, why = fleet.Lost()
		require.ErrorIs(t, why, refused)
		assert.WithinDuration(t, began, since, 5*time.Second)
		assert.Equal(t, PodUnknown, fleet.PodState("a"))
		assert.Len(t, fleet.Active(), 1, "it is as it was")

		down.Store(false)
		time.Sleep(2 * time.Minute) // virtual time
		since, why = fleet.Lost()
		require.NoError(t, why)
		assert.Zero(t, since)
		cancel()
		require.NoError(t, <-ended)
	})
}

// Since when a pod is not Ready tells until when it may have carried load; once it has been seen
// Ready, instances tell it.
func TestUnreadySince(t *testing.T) {
	tracker := NewTracker(Options{})
	fleet := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	assert.Zero(t, fleet.UnreadySince())
	tracker.Update(podWith(unreadyAt(40)))
	tracker.Update(podWith(named("b"), unreadyAt(30)))
	assert.Equal(t, at(40), fleet.UnreadySince())
	tracker.Update(podWith(readyAt(50)))
	assert.Equal(t, at(30), fleet.UnreadySince())
	tracker.Update(podWith(unreadyAt(60)))
	assert.Equal(t, at(30), fleet.UnreadySince())
	tracker.Delete(podWith(named("b")))
	assert.Zero(t, fleet.UnreadySince())
}

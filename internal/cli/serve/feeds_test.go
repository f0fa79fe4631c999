package serve

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/keep/capacitybuffer"
	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/internal/cli/clitest"
	poolcluster "github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/drain"
)

// watchers are all parts that watch nodes or pods.
type watchers struct {
	tracker *podtracker.Watcher
	extends *extender.Extender
	names   *nodeNames
	cluster *poolcluster.Watcher
	startup *capacitybuffer.Nodes
	feeds   []*feeds
}

// newWatchers takes feeds for each part.
func newWatchers(client kubernetes.Interface, next func() *feeds, namespaces ...string) (*watchers, error) {
	w := &watchers{}
	feeds := func() *feeds {
		f := next()
		w.feeds = append(w.feeds, f)
		return f
	}
	tracker := podtracker.NewTracker(podtracker.Options{})
	w.tracker = podtracker.NewWatcher(tracker, feeds().podsOf(namespaces))
	ofExtender, ofPools := feeds(), feeds()
	var err error
	w.extends, err = extender.New(extender.Options{
		Client: client, Nodes: ofExtender.nodes, Pods: ofExtender.pods, Forecasts: noLoads{}, RemovalMark: drain.Mark,
		Rules:    extender.DefaultRules(),
		Registry: prometheus.NewRegistry(),
	})
	w.names = newNodeNames(feeds().nodes)
	w.cluster = poolcluster.NewWatcher(client, poolcluster.WithFeeds(ofPools.nodes, ofPools.pods))
	w.startup = &capacitybuffer.Nodes{Feed: feeds().nodes, Waits: tracker.Waits, Now: time.Now}
	return w, err
}

type noLoads struct{}

func (noLoads) NodeLoads() *snapshot.NodeLoads { return &snapshot.NodeLoads{} }

// run watches until the context ends. Capacity buffers come late.
func (w *watchers) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	started := map[*feeds]bool{}
	for _, f := range w.feeds {
		if !started[f] {
			started[f] = true
			running.Go(func() { _ = f.run(ctx) })
		}
	}
	running.Go(func() { _ = w.tracker.Run(ctx) })
	running.Go(func() { _ = w.cluster.Run(ctx) })
	for w.unknown() != nil && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
	}
	running.Go(func() { w.startup.Watch(ctx) })
}

// unknown returns what parts have yet to see, but for capacity buffers.
func (w *watchers) unknown() error {
	err := errors.Join(w.tracker.Started(), w.extends.Ready())
	if err == nil && w.names.all() == nil {
		err = errors.New("no names of nodes")
	}
	if err != nil {
		return err // a look at the whole cluster takes long
	}
	return seen(w.cluster)
}

// nextFeeds returns the feeds of each part.
func nextFeeds(client kubernetes.Interface, shared bool) func() *feeds {
	all := newFeeds(client)
	return func() *feeds {
		if !shared {
			return newFeeds(client)
		}
		return all
	}
}

// runWatchers runs them until the test ends, and waits until all know the cluster.
func runWatchers(t *testing.T, client kubernetes.Interface, next func() *feeds, namespaces ...string) *watchers {
	t.Helper()
	w, err := newWatchers(client, next, namespaces...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	clitest.Eventually(t, func() bool { return w.startup.StartupTime() > 0 })
	return w
}

// However many parts run, pods and nodes are watched once. Who comes late lists, and watches no more.
func TestPartsShareWatches(t *testing.T) {
	for name, c := range map[string]struct {
		shared       bool
		nodes, pods  int // watches
		nodesOnTheir int // lists
	}{"together": {true, 1, 1, 1}, "each with its own": {false, 4, 3, 0}} {
		t.Run(name, func(t *testing.T) {
			api := serveWatched(t, 3, 30)
			client, err := clientOf(api.URL)
			require.NoError(t, err)
			w := runWatchers(t, client, nextFeeds(client, c.shared))
			seen, err := w.cluster.Observe(t.Context())
			require.NoError(t, err)
			assert.Len(t, seen.Nodes, 3)
			assert.Equal(t, c.nodes, api.requested("watch nodes"))
			assert.Equal(t, c.pods, api.requested("watch pods"))
			assert.Equal(t, c.nodesOnTheir, api.requested("list nodes"))
			assert.Zero(t, api.requested("list pods"))
		})
	}
}

// A part that runs alone watches what it needs.
func TestNoPartWatchesForOthers(t *testing.T) {
	api := serveWatched(t, 3, 30)
	client, err := clientOf(api.URL)
	require.NoError(t, err)
	all := newFeeds(client)
	tracker := podtracker.NewWatcher(podtracker.NewTracker(podtracker.Options{}), all.podsOf(nil))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = all.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	clitest.Eventually(t, func() bool { return tracker.Started() == nil })
	assert.Equal(t, 1, api.requested("watch pods"))
	assert.Zero(t, api.requested("watch nodes"))
}

// Pods of namespaces are watched there, for which rights may be given that those of the whole cluster would not be.
func TestNamespacesHaveWatchesOfTheirOwn(t *testing.T) {
	client := fake.NewClientset(watchedPod(1, 3), watchedPod(2, 3), watchedNode(1))
	all := newFeeds(client)
	runWatchers(t, client, func() *feeds { return all }, "team-1", "team-2")
	watched := map[string]int{}
	for _, a := range client.Actions() {
		if a.Matches("watch", "pods") {
			watched[a.GetNamespace()]++
		}
	}
	assert.Equal(t, map[string]int{"": 1, "team-1": 1, "team-2": 1}, watched)
}

// Parts get the same objects, so none may change them.
func TestPartsLeaveObjectsAsTheyAre(t *testing.T) {
	client := fake.NewClientset(watchedNode(1))
	pods := watch.NewFake()
	client.PrependWatchReactor("pods", clienttesting.DefaultWatchReactor(pods, nil))
	all := newFeeds(client)
	w := runWatchers(t, client, func() *feeds { return all })
	p := watchedPod(1, 2)
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
	before := p.DeepCopy()
	pods.Add(p)
	clitest.Eventually(t, func() bool {
		seen, err := w.cluster.Observe(t.Context())
		return err == nil && len(seen.Nodes[0].Pods) == 1
	})
	assert.Equal(t, before, p)
}

package extender

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/foresail/foresail/nodepool/drain"
)

// witness sees everything that happens to the pods and nodes of a stage, in the order in which the
// API server has written it: versions of objects of any kind are those of one etcd, and so tell
// what came first. Events of pods and of nodes come by two watches, one of which may be late: see
// catchUp.
type witness struct {
	stage   string
	watched []*watched

	mu     sync.Mutex
	pods   map[types.UID]*podFate
	nodes  map[string]*nodeFate
	silent []string // what was not understood
}

// watched is a kind of objects, and the version of each that was heard of last.
type watched struct {
	source *cache.ListWatch
	since  uint64
	heard  map[types.UID]uint64
	gone   map[types.UID]bool
}

// moment is when something was written, and when it was heard of.
type moment struct {
	version uint64 // 0: it was not
	at      time.Time
}

type podFate struct {
	name, node           string
	created, bound, gone moment
	refusal              string // the last message of PodScheduled while it was False
}

type nodeFate struct {
	created, tainted, cordoned, gone moment
}

// watch begins to witness the pods of an app, "" for all, and the nodes; it ends with the test.
func (s *stage) watch(app string) *witness {
	s.Helper()
	w := &witness{stage: s.name, pods: map[types.UID]*podFate{}, nodes: map[string]*nodeFate{}}
	client := cluster.Client().CoreV1()
	selector := ""
	if app != "" {
		selector = "app=" + app
	}
	w.follow(s, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return client.Pods(s.name).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return client.Pods(s.name).Watch(ctx, o)
		},
	}, w.seePod)
	w.follow(s, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.Nodes().List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Nodes().Watch(ctx, o)
		},
	}, w.seeNode)
	return w
}

// follow hears every event from the present on. Nothing is lost between two watches.
func (w *witness) follow(s *stage, lw *cache.ListWatch, see func(watch.Event, moment)) {
	s.Helper()
	list, err := lw.ListWithContext(s.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(s, err)
	of, err := meta.ListAccessor(list)
	require.NoError(s, err)
	kind := &watched{source: lw, since: versionOf(of.GetResourceVersion()), heard: map[types.UID]uint64{},
		gone: map[types.UID]bool{}}
	w.watched = append(w.watched, kind)
	watcher, err := watchtools.NewRetryWatcherWithContext(s.Context(), of.GetResourceVersion(), lw)
	require.NoError(s, err)
	var running sync.WaitGroup
	running.Go(func() {
		for event := range watcher.ResultChan() {
			object, ok := event.Object.(metav1.Object)
			if !ok {
				w.mu.Lock()
				w.silent = append(w.silent, string(event.Type))
				w.mu.Unlock()
				continue
			}
			version := versionOf(object.GetResourceVersion())
			w.mu.Lock()
			see(event, moment{version, time.Now()})
			kind.heard[object.GetUID()] = version
			kind.gone[object.GetUID()] = event.Type == watch.Deleted
			w.mu.Unlock()
		}
	})
	s.Cleanup(func() {
		watcher.Stop()
		running.Wait()
	})
}

// versionOf returns 0 for what is no number.
func versionOf(resourceVersion string) uint64 {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// catchUp waits until everything has been heard of that was written before the call.
func (w *witness) catchUp(s *stage) {
	s.Helper()
	for _, kind := range w.watched {
		list, err := kind.source.ListWithContext(s.Context(), metav1.ListOptions{})
		require.NoError(s, err)
		of, err := meta.ListAccessor(list)
		require.NoError(s, err)
		written := map[types.UID]uint64{}
		require.NoError(s, meta.EachListItem(list, func(object runtime.Object) error {
			one, err := meta.Accessor(object)
			if err == nil {
				written[one.GetUID()] = versionOf(one.GetResourceVersion())
			}
			return err
		}))
		s.until("everything written to be heard of", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return kind.upTo(versionOf(of.GetResourceVersion()), written)
		})
	}
}

// upTo tells whether everything has been heard of that had been written at a version, when there
// were these objects.
func (k *watched) upTo(version uint64, written map[types.UID]uint64) bool {
	for uid, last := range written {
		if last > k.since && k.heard[uid] < last {
			return false
		}
	}
	for uid, last := range k.heard {
		if _, there := written[uid]; !there && !k.gone[uid] && last <= version {
			return false
		}
	}
	return true
}

func (w *witness) seePod(event watch.Event, m moment) {
	pod := event.Object.(*corev1.Pod)
	fate := w.pods[pod.UID]
	if fate == nil {
		fate = &podFate{name: pod.Name, created: m}
		w.pods[pod.UID] = fate
	}
	if fate.node == "" && pod.Spec.NodeName != "" {
		fate.node, fate.bound = pod.Spec.NodeName, m
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			fate.refusal = c.Message
		}
	}
	if event.Type == watch.Deleted {
		fate.gone = m
	}
}

func (w *witness) seeNode(event watch.Event, m moment) {
	node := event.Object.(*corev1.Node)
	if node.Labels[stageLabel] != w.stage {
		return
	}
	fate := w.nodes[node.Name]
	if fate == nil {
		fate = &nodeFate{created: m}
		w.nodes[node.Name] = fate
	}
	if _, marked := drain.MarkOf(node); marked && fate.tainted.version == 0 {
		fate.tainted = m
	}
	if node.Spec.Unschedulable && fate.cordoned.version == 0 {
		fate.cordoned = m
	}
	if event.Type == watch.Deleted {
		fate.gone = m
	}
}

// podFates returns copies of all.
func (w *witness) podFates() []podFate {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []podFate
	for _, fate := range w.pods {
		out = append(out, *fate)
	}
	return out
}

// boundAt tells since when a pod is on a node, zero if it is not or if there is no such pod.
func (w *witness) boundAt(pod string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fate := range w.pods {
		if fate.name == pod && fate.node != "" {
			return fate.bound.at
		}
	}
	return time.Time{}
}

// marked returns copies of those whose nodes are marked.
func (w *witness) marked() map[string]nodeFate {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]nodeFate{}
	for name, fate := range w.nodes {
		if fate.tainted.version > 0 {
			out[name] = *fate
		}
	}
	return out
}

// bound counts the pods that have been bound so far.
func (w *witness) bound() (n int) {
	for _, fate := range w.podFates() {
		if fate.node != "" {
			n++
		}
	}
	return n
}

// refused counts the pods that the scheduler has found no node for so far.
func (w *witness) refused() (n int) {
	for _, fate := range w.podFates() {
		if fate.refusal != "" {
			n++
		}
	}
	return n
}

// rate returns how many pods were bound in a second, from the creation of the first to the binding
// of the last.
func (w *witness) rate() (n int, took time.Duration, perSecond float64) {
	var first, last time.Time
	for _, fate := range w.podFates() {
		if fate.node == "" {
			continue
		}
		n++
		if first.IsZero() || fate.created.at.Before(first) {
			first = fate.created.at
		}
		if fate.bound.at.After(last) {
			last = fate.bound.at
		}
	}
	took = last.Sub(first)
	return n, took, float64(n) / took.Seconds()
}

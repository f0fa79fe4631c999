package capacitybuffer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/keep/keeptest"
	"github.com/foresail/foresail/internal/objectcache"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func second(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }

func waited(node string, created, scheduled int) podtracker.Wait {
	return podtracker.Wait{Node: node, Created: second(created), Scheduled: second(scheduled)}
}

// nodesAt returns nodes that were created at seconds, and were Ready so many later; negative: never.
func nodesAt(ready int, created ...int) map[string]nodeTimes {
	out := map[string]nodeTimes{}
	for i, s := range created {
		n := nodeTimes{uid: types.UID(fmt.Sprint("uid-", i)), created: second(s)}
		if ready >= 0 {
			n.ready = second(s + ready)
		}
		out[fmt.Sprint("node-", i)] = n
	}
	return out
}

func TestStartupTimeOfNodes(t *testing.T) {
	for name, c := range map[string]struct {
		nodes map[string]nodeTimes
		waits []podtracker.Wait
		want  Startup
	}{
		"nothing seen":                           {want: Startup{Time: assumedStartup}},
		"readiness is less than what is assumed": {nodes: nodesAt(40, 0, 10), want: Startup{Time: assumedStartup}},
		"readiness takes longer":                 {nodes: nodesAt(200, 0, 10), want: Startup{Time: 200 * time.Second}},
		"readiness after a failure is no start":  {nodes: nodesAt(2000, 0, 10), want: Startup{Time: assumedStartup}},
		"not ready":                              {nodes: nodesAt(-1, 0), want: Startup{Time: assumedStartup}},
		"a pod waited": {nodes: nodesAt(10, 60), waits: []podtracker.Wait{waited("node-0", 0, 95)},
			want: Startup{Time: 95 * time.Second, Measured: 1}},
		"several pods waited for one node": {nodes: nodesAt(10, 60),
			waits: []podtracker.Wait{waited("node-0", 50, 95), waited("node-0", 0, 95), waited("node-0", 40, 95)},
			want:  Startup{Time: 95 * time.Second, Measured: 1}},
		"a node that was there": {nodes: nodesAt(10, 0), waits: []podtracker.Wait{waited("node-0", 30, 95)},
			want: Startup{Time: assumedStartup}},
		"another node of the same name": {nodes: nodesAt(10, 100),
			waits: []podtracker.Wait{waited("node-0", 0, 95)}, want: Startup{Time: assumedStartup}},
		"a node that is gone": {waits: []podtracker.Wait{waited("node-0", 0, 95)},
			want: Startup{Time: assumedStartup}},
		"a lack of nodes": {nodes: nodesAt(10, 5000),
			waits: []podtracker.Wait{waited("node-0", 0, 5060)}, want: Startup{Time: assumedStartup}},
		"a wait for something else before": {nodes: nodesAt(10, 660),
			waits: []podtracker.Wait{waited("node-0", 0, 680)}, want: Startup{Time: assumedStartup}},
		"a wait for something else after": {nodes: nodesAt(10, 60),
			waits: []podtracker.Wait{waited("node-0", 0, 1500)}, want: Startup{Time: assumedStartup}},
		"a shorter wait than a node can take": {nodes: nodesAt(0, 3), waits: []podtracker.Wait{waited("node-0", 0, 6)},
			want: Startup{Time: minStartup, Measured: 1}},
		"short waits do not hide the longer ones": {nodes: nodesAt(10, 60, 60, 60),
			waits: []podtracker.Wait{waited("node-0", 50, 70), waited("node-1", 0, 90), waited("node-2", 55, 71)},
			want:  Startup{Time: 90 * time.Second, Measured: 3}},
	} {
		s := starts{}
		s.observe(c.nodes, c.waits)
		s.observe(c.nodes, c.waits)
		assert.Equal(t, c.want, s.startup(c.nodes), name)
	}
}

// One start of ten that took long is an exception.
func TestStartupTimeIsAHighQuantile(t *testing.T) {
	s := starts{}
	for i := range 10 {
		s[types.UID(fmt.Sprint(i))] = start{took: time.Duration(60+i) * time.Second, at: second(i)}
	}
	s["9"] = start{took: 20 * time.Minute, at: second(9)}
	assert.Equal(t, Startup{Time: 68 * time.Second, Measured: 10}, s.startup(nil))
}

func TestTheNewestNodesCount(t *testing.T) {
	s := starts{}
	for i := range 2 * nodesKept {
		node := map[string]nodeTimes{"node": {uid: types.UID(fmt.Sprint(i)), created: second(1000*i + 50)}}
		took := 300
		if i >= nodesKept {
			took = 100
		}
		s.observe(node, []podtracker.Wait{waited("node", 1000*i, 1000*i+took)})
	}
	assert.Len(t, s, nodesKept)
	assert.Equal(t, Startup{Time: 100 * time.Second, Measured: nodesKept}, s.startup(nil),
		"also of nodes that are gone")
}

func node(name string, created, ready int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(second(created))},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(second(ready))},
		}},
	}
}

func TestNodesAreWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(node("a", 0, 150))
		var waits atomic.Pointer[[]podtracker.Wait]
		waits.Store(&[]podtracker.Wait{})
		feed := objectcache.Nodes(client)
		n := &Nodes{Feed: feed, Waits: func() []podtracker.Wait { return *waits.Load() }, Now: time.Now}
		assert.Zero(t, n.StartupTime())
		var running sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		running.Go(func() { feed.Run(ctx) })
		running.Go(func() { n.Watch(ctx) })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, 150*time.Second, n.StartupTime(), "until a pod has waited for a node")
		_, err := client.CoreV1().Nodes().Create(ctx, node("b", 60, 80), metav1.CreateOptions{})
		require.NoError(t, err)
		waits.Store(&[]podtracker.Wait{waited("b", 0, 85)})
		time.Sleep(measurePeriod)
		synctest.Wait()
		s, known := n.Startup()
		assert.True(t, known)
		assert.Equal(t, Startup{Time: 85 * time.Second, Measured: 1}, s)
		cancel()
		running.Wait()
		assert.Zero(t, n.StartupTime(), "who does not watch does not know")
	})
}

func TestNodesThatCannotBeRead(t *testing.T) {
	keeptest.WithoutErrorHandlers(t)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("not granted")
		})
		feed := objectcache.Nodes(client)
		n := &Nodes{Feed: feed, Waits: func() []podtracker.Wait { return nil }, Now: time.Now}
		var running sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		running.Go(func() { feed.Run(ctx) })
		running.Go(func() { n.Watch(ctx) })
		time.Sleep(unreadableAfter - time.Second)
		synctest.Wait()
		assert.Zero(t, n.StartupTime(), "not yet")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		s, known := n.Startup()
		assert.True(t, known)
		assert.Equal(t, assumedStartup, s.Time)
		assert.ErrorContains(t, s.Err, "not granted")
		cancel()
		running.Wait()
	})
}

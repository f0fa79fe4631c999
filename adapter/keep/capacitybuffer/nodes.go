package capacitybuffer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/internal/objectcache"
)

const (
	// assumedStartup is how long a node is assumed to take until one was seen. Clouds take one to three minutes.
	assumedStartup = 2 * time.Minute
	// minStartup and maxStartup bound what is measured. What took longer was no start of a node, but a lack of them.
	minStartup, maxStartup = 10 * time.Second, 30 * time.Minute
	// longestBoot is how long after its pod a node is created at most, and longestBinding how long after the node
	// is ready the pod is scheduled, if the pod waited for that node and for nothing else.
	longestBoot, longestBinding = 10 * time.Minute, time.Minute
	// quantile is the share of starts that take no longer than the startup time. It is no median: a pod may wait for a
	// node that was ordered for another one before it, a buffer for example, and such waits are short. And too long
	// costs some spare pods for a while, too short makes pods wait.
	quantile = 0.9
	// nodesKept is how many of the newest nodes count.
	nodesKept = 64
	// measurePeriod is the time between two computations of the startup time.
	measurePeriod = 10 * time.Second
	// unreadableAfter is how long the nodes may not have been listed before a startup time is assumed.
	unreadableAfter = 30 * time.Second
)

// Startup is how long nodes take from a pod that waits for one until the pod is scheduled.
type Startup struct {
	Time     time.Duration
	Measured int   // how many nodes it is measured from; 0: it is assumed
	Err      error // why nodes cannot be read, nil if they can
}

// Feed has the nodes for several parts of a process.
type Feed interface {
	Subscribe(objectcache.Store) (cancel func())
}

// Nodes measures how long nodes take to start, while Watch runs. It watches nodes for that, and keeps three times of
// each.
type Nodes struct {
	Feed Feed
	// Waits returns how long pods have waited for their nodes.
	Waits func() []podtracker.Wait
	Now   func() time.Time

	startup atomic.Pointer[Startup] // nil: nodes are not watched, or not known yet
}

// nodeTimes are the times of a node that its startup time is computed from.
type nodeTimes struct {
	uid            types.UID
	created, ready time.Time // ready is zero while it is not
}

func nodeTimesOf(n *corev1.Node) (nodeTimes, bool) {
	t := nodeTimes{uid: n.UID, created: n.CreationTimestamp.Time}
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			t.ready = c.LastTransitionTime.Time
		}
	}
	return t, true
}

// Startup returns how long nodes take, false while it is not known.
func (n *Nodes) Startup() (Startup, bool) {
	if s := n.startup.Load(); s != nil {
		return *s, true
	}
	return Startup{}, false
}

// StartupTime returns how long nodes take, 0 while it is not known.
func (n *Nodes) StartupTime() time.Duration {
	s, _ := n.Startup()
	return s.Time
}

// Watch watches nodes until the context ends.
func (n *Nodes) Watch(ctx context.Context) {
	var mu sync.Mutex
	t := objectcache.New(objectcache.Options[string, *corev1.Node, nodeTimes]{
		What: "nodes", Lock: &mu, Now: n.Now, Keep: nodeTimesOf, Key: func(o *corev1.Node) string { return o.Name },
	})
	defer n.Feed.Subscribe(t)()
	defer n.startup.Store(nil)
	began, starts := n.Now(), starts{}
	for wait := time.Second; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		mu.Lock()
		err, nodes := t.State(n.Now()), maps.Clone(t.Rows())
		mu.Unlock()
		wait = measurePeriod
		switch {
		case err == nil:
			starts.observe(nodes, n.Waits())
			n.startup.Store(new(starts.startup(nodes)))
		case errors.Is(err, objectcache.ErrUnsynced) && n.Now().Sub(began) < unreadableAfter:
			wait = time.Second // not listed yet
		default:
			s := starts.startup(nil)
			s.Err = fmt.Errorf("nodes cannot be read: %w", err)
			n.startup.Store(&s)
		}
	}
}

// starts are the nodes that pods have waited for, by UID: the longest wait for each, which is that of the pod that it
// was ordered for.
type starts map[types.UID]start

type start struct {
	took time.Duration
	at   time.Time // when the pod was scheduled
}

// observe adds the nodes that pods have waited for, which were created after their pods. It forgets all but the newest
// nodes, and remembers those after they are deleted.
func (s starts) observe(nodes map[string]nodeTimes, waits []podtracker.Wait) {
	for _, w := range waits {
		n, ok := nodes[w.Node]
		took := w.Scheduled.Sub(w.Created)
		// A node of the same name may have come after the one that the pod was bound to.
		if !ok || !n.created.After(w.Created) || n.created.After(w.Scheduled) || took > maxStartup {
			continue
		}
		// Nor did the pod wait for this node if it waited for something else before or after: a quota, a volume, a
		// maximum of nodes.
		if n.created.Sub(w.Created) > longestBoot || (!n.ready.IsZero() && w.Scheduled.Sub(n.ready) > longestBinding) {
			continue
		}
		if took > s[n.uid].took {
			s[n.uid] = start{took, w.Scheduled}
		}
	}
	if len(s) <= nodesKept {
		return
	}
	newest := slices.SortedFunc(maps.Keys(s), func(a, b types.UID) int {
		return cmp.Or(s[b].at.Compare(s[a].at), cmp.Compare(a, b))
	})
	for _, uid := range newest[nodesKept:] {
		delete(s, uid)
	}
}

// startup returns the time that nodes take to start. Until a pod has waited for a node it is the longer of
// assumedStartup and the time that the present nodes took from creation to readiness: a machine boots before its Node
// is created.
func (s starts) startup(nodes map[string]nodeTimes) Startup {
	if len(s) > 0 {
		took := make([]time.Duration, 0, len(s))
		for _, x := range s {
			took = append(took, x.took)
		}
		return Startup{Time: min(max(quantileOf(took), minStartup), maxStartup), Measured: len(s)}
	}
	return Startup{Time: max(assumedStartup, quantileOf(readiness(nodes)))}
}

// readiness returns how long the newest nodes took to become Ready. What took longer than any start was another reason.
func readiness(nodes map[string]nodeTimes) []time.Duration {
	all := slices.SortedFunc(maps.Values(nodes), func(a, b nodeTimes) int {
		return cmp.Or(b.created.Compare(a.created), cmp.Compare(a.uid, b.uid))
	})
	var took []time.Duration
	for _, n := range all[:min(len(all), nodesKept)] {
		if d := n.ready.Sub(n.created); !n.ready.IsZero() && d >= 0 && d <= maxStartup {
			took = append(took, d)
		}
	}
	return took
}

// quantileOf returns the value that the share quantile of values does not exceed, 0 of none. It sorts them.
func quantileOf(values []time.Duration) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[int(math.Ceil(quantile*float64(len(values))))-1]
}

//go:build long

package karpenter_test

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/foresail/foresail/test/bench/karpenter"
)

// ledger keeps when the pods of a namespace were there and bound, and when the instances of a pool
// were there, as they are seen.
type ledger struct {
	mu        sync.Mutex
	pods      map[types.UID]*span // from their creation until a node has them
	bound     map[types.UID]bool  // pods that a node has
	instances map[types.UID]*span // from their launch until they are gone
}

// span is a time; end is zero while it lasts.
type span struct{ begin, end time.Time }

// within is how much of a span lies within another one.
func (s span) within(begin, end time.Time) time.Duration {
	if s.begin.After(begin) {
		begin = s.begin
	}
	if !s.end.IsZero() && s.end.Before(end) {
		end = s.end
	}
	return max(0, end.Sub(begin))
}

// newLedger returns a ledger of a namespace that is kept until the test ends. It knows no instances
// before watchNodeClaims or watchInstances.
func newLedger(t testing.TB, namespace string) *ledger {
	t.Helper()
	l := &ledger{pods: map[types.UID]*span{}, bound: map[types.UID]bool{}, instances: map[types.UID]*span{}}
	factory := informers.NewSharedInformerFactoryWithOptions(shared.stack.Cluster.Client(), 0,
		informers.WithNamespace(namespace))
	watch(t, factory.Core().V1().Pods().Informer(), func(o metav1.Object, gone bool) {
		l.see(l.pods, o, gone || o.(*corev1.Pod).Spec.NodeName != "")
		l.seeBound(o.(*corev1.Pod), gone)
	})
	return l
}

func (l *ledger) seeBound(pod *corev1.Pod, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if gone || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		delete(l.bound, pod.UID)
	} else {
		l.bound[pod.UID] = true
	}
}

// boundNow counts the pods that a node has and that are not leaving.
func (l *ledger) boundNow() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bound)
}

// watchNodeClaims takes the instances of a NodePool in. One costs from its NodeClaim on, long
// before its Node.
func (l *ledger) watchNodeClaims(t testing.TB, pool string) {
	t.Helper()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(shared.stack.Cluster.Dynamic(), 0, "",
		func(o *metav1.ListOptions) {
			o.LabelSelector = karpenter.PoolLabel + "=" + pool
		})
	watch(t, factory.ForResource(karpenter.NodeClaims).Informer(),
		func(o metav1.Object, gone bool) { l.see(l.instances, o, gone) })
}

// watchInstances takes the instances of a simulated cloud in, which are ConfigMaps.
func (l *ledger) watchInstances(t testing.TB, namespace string) {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(shared.stack.Cluster.Client(), 0,
		informers.WithNamespace(namespace))
	watch(t, factory.Core().V1().ConfigMaps().Informer(), func(o metav1.Object, gone bool) {
		data, ok := o.(*corev1.ConfigMap).Data["instance"]
		if !ok {
			return // the certificates that every namespace has
		}
		var i fleet.Instance
		err := json.Unmarshal([]byte(data), &i)
		l.see(l.instances, o, gone || err == nil && i.State != fleet.Pending && i.State != fleet.Running)
	})
}

// watch calls see for each object that comes, changes or goes, until the test ends.
func watch(t testing.TB, informer cache.SharedIndexInformer, see func(o metav1.Object, gone bool)) {
	t.Helper()
	_, err := informer.AddEventHandler(handler(see))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
}

func handler(see func(o metav1.Object, gone bool)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { see(o.(metav1.Object), false) },
		UpdateFunc: func(_, o any) { see(o.(metav1.Object), false) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			see(o.(metav1.Object), true)
		},
	}
}

func (l *ledger) see(of map[types.UID]*span, o metav1.Object, over bool) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := of[o.GetUID()]
	if s == nil {
		s = &span{begin: now}
		of[o.GetUID()] = s
	}
	if over && s.end.IsZero() {
		s.end = now
	}
}

// instancesNow counts the instances that there are.
func (l *ledger) instancesNow() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.instancesAt(time.Now())
}

// figures are what a stretch of time cost.
type figures struct {
	pending, nodes time.Duration // of all pods, and of all instances, together
	waited         int           // pods that waited for longer than a second
	most           int           // instances at a time

	pods               int             // that were created
	waits              []time.Duration // of these, the shortest first
	launches, removals int
}

// quantile is how long a share of the pods that were created waited at most.
func (f figures) quantile(share float64) time.Duration {
	if len(f.waits) == 0 {
		return 0
	}
	return f.waits[int(math.Ceil(share*float64(len(f.waits))))-1]
}

func (l *ledger) figures(begin, end time.Time) (f figures) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.pods {
		waited := s.within(begin, end)
		if f.pending += waited; waited > time.Second {
			f.waited++
		}
		if inside(s.begin, begin, end) {
			f.pods++
			f.waits = append(f.waits, waited)
		}
	}
	slices.Sort(f.waits)
	for _, s := range l.instances {
		if inside(s.begin, begin, end) {
			f.launches++
		}
		if inside(s.end, begin, end) {
			f.removals++
		}
		within := s.within(begin, end)
		if f.nodes += within; within > 0 {
			f.most = max(f.most, l.instancesAt(later(s.begin, begin)))
		}
	}
	return f
}

func inside(at, begin, end time.Time) bool { return !at.Before(begin) && at.Before(end) }

// pendingNow counts the pods that no node has.
func (l *ledger) pendingNow() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.pods {
		if s.end.IsZero() {
			n++
		}
	}
	return n
}

func (l *ledger) instancesAt(at time.Time) (n int) {
	for _, s := range l.instances {
		if !s.begin.After(at) && (s.end.IsZero() || s.end.After(at)) {
			n++
		}
	}
	return n
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/simulated"
	"github.com/foresail/foresail/test/env/foresail"
)

// pod is what is known of a pod of the application.
type pod struct {
	seen, bound time.Time // bound is zero while no node has taken it
	node        string
	refused     bool // the scheduler has found no node for it
	gone        bool
}

// instance is an instance from its launch to its end, as they are seen.
type instance struct {
	fleet.Instance
	seen, ended time.Time // ended is zero while it is there
	ahead       bool      // no pod was waiting for a node when it was launched
}

// ledger keeps what happens. It is safe for concurrent use.
type ledger struct {
	mu        sync.Mutex
	began     time.Time
	pods      map[types.UID]*pod
	instances map[string]*instance
	order     []string                // of instances, by launch
	nodes     map[string]*corev1.Node // by provider id
	pool      v1alpha1.WorkerPool
	decisions []v1alpha1.PoolDecision // all of them, the oldest first
	err       error                   // of the last look that failed
	figures   figures
	peak      int
}

func newLedger() *ledger {
	return &ledger{pods: map[types.UID]*pod{}, instances: map[string]*instance{}, nodes: map[string]*corev1.Node{}}
}

// begin sets when the load begins. Nothing before it counts.
func (l *ledger) begin(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began = at
}

// note keeps an error for the view; nil clears it.
func (l *ledger) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !errors.Is(err, context.Canceled) {
		l.err = err
	}
}

// watch keeps the ledger until the context ends.
func (l *ledger) watch(ctx context.Context, cluster kubernetes.Interface, objects client.Client,
	process *foresail.Process) error {
	factory := informers.NewSharedInformerFactoryWithOptions(cluster, 0, informers.WithNamespace(namespace))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { l.seePod(o, false) },
		UpdateFunc: func(_, o any) { l.seePod(o, false) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			l.seePod(o, true)
		},
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	cloud := simulated.New(simulated.Options{Client: cluster, Pool: poolName, Now: time.Now})
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		err := l.read(ctx, cluster, cloud, objects)
		families, _ := process.Metrics(ctx) // none, if they cannot be read
		l.measure(figuresOf(families))
		l.note(err)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (l *ledger) seePod(object any, gone bool) {
	seen, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pods[seen.UID]
	if p == nil {
		p = &pod{seen: now}
		l.pods[seen.UID] = p
	}
	if p.bound.IsZero() && seen.Spec.NodeName != "" {
		p.bound, p.node = now, seen.Spec.NodeName
	}
	for _, c := range seen.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			p.refused = c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	p.gone = gone || seen.DeletionTimestamp != nil
}

// read lists the objects that are not watched.
func (l *ledger) read(ctx context.Context, cluster kubernetes.Interface, cloud *simulated.Cloud,
	objects client.Client) error {
	instances, err := cloud.List(ctx)
	if err != nil {
		return err
	}
	nodes, err := cluster.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var pool v1alpha1.WorkerPool
	if err := objects.Get(ctx, client.ObjectKey{Name: poolName}, &pool); err != nil {
		return err
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seeInstances(instances, now)
	clear(l.nodes)
	for i := range nodes.Items {
		l.nodes[nodes.Items[i].Spec.ProviderID] = &nodes.Items[i]
	}
	l.pool = pool
	l.seeDecisions(pool.Status.Decisions)
	return nil
}

// measure keeps the figures of now.
func (l *ledger) measure(f figures) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.figures = f
}

func (l *ledger) seeInstances(there []fleet.Instance, now time.Time) {
	listed := map[string]bool{}
	for _, i := range there {
		listed[i.ID] = true
		if known := l.instances[i.ID]; known != nil {
			known.Instance = i
			continue
		}
		l.instances[i.ID] = &instance{Instance: i, seen: now, ahead: l.waiting() == 0}
		l.order = append(l.order, i.ID)
	}
	for id, i := range l.instances {
		if !listed[id] && i.ended.IsZero() {
			i.ended = now
		}
	}
	l.peak = max(l.peak, len(there))
}

// seeDecisions takes what the trail, which has the newest first, has beyond the last decision that was taken.
func (l *ledger) seeDecisions(trail []v1alpha1.PoolDecision) {
	beyond := len(trail)
	if len(l.decisions) > 0 {
		last := &l.decisions[len(l.decisions)-1]
		for i := range trail {
			if sameDecision(&trail[i], last) {
				*last, beyond = trail[i], i // it may have been made again since
				break
			}
		}
	}
	for _, d := range slices.Backward(trail[:beyond]) {
		l.decisions = append(l.decisions, d)
	}
}

func sameDecision(a, b *v1alpha1.PoolDecision) bool {
	return a.Time.Equal(&b.Time) && a.Step == b.Step && a.Reason == b.Reason && a.Workers == b.Workers &&
		a.Desired == b.Desired
}

// waiting counts the pods that the scheduler has found no node for.
func (l *ledger) waiting() (n int) {
	for _, p := range l.pods {
		if !p.gone && p.bound.IsZero() && p.refused {
			n++
		}
	}
	return n
}

// nodeState is where a node is in its life.
type nodeState string

const (
	launching nodeState = "launching"
	serving   nodeState = "ready"
	draining  nodeState = "draining"
	leaving   nodeState = "leaving"
)

// node is a node as it is shown.
type node struct {
	id     string // of the instance
	name   string // its id, until the node has joined
	zone   string
	market fleet.Market
	state  nodeState
	pods   int
	age    time.Duration
}

// scene is all that is shown at one moment.
type scene struct {
	at    time.Duration // since the load began
	phase string
	asked int // replicas

	longest time.Duration // that the play may last

	running, waiting int // pods
	nodes            []node
	status           v1alpha1.WorkerPoolStatus
	figures          figures
	spec             v1alpha1.WorkerPoolSpec
	decisions        []v1alpha1.PoolDecision // the oldest first
	began            time.Time
	health           string
}

// look returns what there is now.
func (l *ledger) look(now time.Time) scene {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := scene{status: l.pool.Status, spec: l.pool.Spec, figures: l.figures, decisions: slices.Clone(l.decisions),
		began: l.began, health: l.health()}
	on := map[string]int{}
	for _, p := range l.pods {
		switch {
		case p.gone:
		case p.bound.IsZero():
			s.waiting++
		default:
			s.running++
			on[p.node]++
		}
	}
	for _, id := range l.order {
		i := l.instances[id]
		if i.ended.IsZero() {
			s.nodes = append(s.nodes, l.nodeOf(i, on, now))
		}
	}
	return s
}

func (l *ledger) nodeOf(i *instance, pods map[string]int, now time.Time) node {
	n := node{id: i.ID, name: i.ID, zone: i.Zone, market: i.Market, state: launching, age: now.Sub(i.seen)}
	joined := l.nodes[i.ProviderID]
	if joined != nil {
		n.name, n.pods = joined.Name, pods[joined.Name]
		if isReady(joined) {
			n.state = serving
		}
		if _, marked := drain.MarkOf(joined); marked {
			n.state = draining
		}
	}
	if i.State == fleet.Leaving {
		n.state = leaving
	}
	return n
}

func isReady(n *corev1.Node) bool {
	return len(n.Spec.Taints) == 0 && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// health is what is wrong, "" if nothing is known to be.
func (l *ledger) health() string {
	var wrong []string
	if l.err != nil {
		wrong = append(wrong, l.err.Error())
	}
	for _, c := range l.pool.Status.Conditions {
		if c.Status != metav1.ConditionTrue {
			wrong = append(wrong, fmt.Sprintf("%s is %s: %s", c.Type, c.Status, c.Message))
		}
	}
	if meta.FindStatusCondition(l.pool.Status.Conditions, v1alpha1.ConditionHealthy) == nil {
		wrong = append(wrong, "it has reported nothing yet")
	}
	return strings.Join(wrong, "; ")
}

// ready counts the nodes that take pods.
func (s scene) ready() (n int) {
	for _, node := range s.nodes {
		if node.state == serving {
			n++
		}
	}
	return n
}

// settled tells whether the pool is as small as it may be, and has nothing left to do.
func (s scene) settled() bool {
	return s.status.Action == nil && s.waiting == 0 && len(s.nodes) == int(s.spec.Min) && s.ready() == len(s.nodes)
}

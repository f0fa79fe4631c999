package poolbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/observe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// What all nodes have and all pods request: eight pods fill a node.
var (
	nodeShape = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	podRequests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
		corev1.ResourcePods: resource.MustParse("1"),
	}
)

const (
	podsPerNode  = 8
	instanceType = "m5.xlarge"
	poolName     = "workers"
	// podGrace is how long evicted pods take to end, and shutdown how long terminated instances are listed.
	podGrace = 2 * time.Second
	shutdown = 5 * time.Second
)

// play is a cloud and a cluster with one Deployment. Each step, its controller makes and removes
// pods, the scheduler binds them to the first node with room, and instances join as nodes. It is
// safe for concurrent use.
type play struct {
	mu     sync.Mutex
	now    func() time.Time
	random *rand.Rand
	join   func(*rand.Rand) time.Duration

	machines []*machine // in order of their launch, those that have gone left out
	tokens   map[string]provider.Launched
	pods     []*podPlayed // that exist, in order of creation
	wakes    chan struct{}

	counting time.Time // since when what happens is counted; zero = it is not yet
	outcome  outcome
}

// machine is an instance, and its node once it has joined.
type machine struct {
	fleet.Instance
	joinsAt time.Time
	endedAt time.Time // zero: it runs
	node    *corev1.Node
	since   time.Time // the node has been Ready
	mark    string    // of the action that it leaves by
	cordon  bool
	pods    int
}

type podPlayed struct {
	name    string
	created time.Time
	on      *machine  // nil: no node has taken it
	leaves  time.Time // zero: it stays
}

func newPlay(now func() time.Time, seed uint64, join func(*rand.Rand) time.Duration) *play {
	return &play{now: now, random: rand.New(rand.NewPCG(seed, 1)), join: join, tokens: map[string]provider.Launched{},
		wakes: make(chan struct{}, 1)}
}

// step lets a moment pass, in which a Deployment wants so many pods.
func (p *play) step(replicas int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.settle(now)
	p.control(replicas, now)
	p.schedule(now)
	p.outcome.see(p, now)
}

// settle has instances join and end, and pods leave.
func (p *play) settle(now time.Time) {
	for _, m := range p.machines {
		if m.node == nil && m.endedAt.IsZero() && !now.Before(m.joinsAt) {
			m.State, m.since = fleet.Running, now
			m.node = nodeOf(m, now)
			p.wake()
		}
	}
	p.machines = slices.DeleteFunc(p.machines,
		func(m *machine) bool { return !m.endedAt.IsZero() && now.Sub(m.endedAt) >= shutdown && m.node == nil })
	p.pods = slices.DeleteFunc(p.pods, func(d *podPlayed) bool {
		gone := !d.leaves.IsZero() && !now.Before(d.leaves)
		if gone {
			d.on.pods--
		}
		return gone
	})
}

func nodeOf(m *machine, now time.Time) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + m.ID, CreationTimestamp: metav1.NewTime(now),
			Labels: map[string]string{
				corev1.LabelTopologyZone: m.Zone, corev1.LabelInstanceTypeStable: m.InstanceType,
			}},
		Spec:   corev1.NodeSpec{ProviderID: m.ProviderID},
		Status: corev1.NodeStatus{Allocatable: nodeShape, Capacity: nodeShape},
	}
}

// control is the ReplicaSet: of too many pods those go first that no node has taken, then the
// youngest on the fullest node.
func (p *play) control(replicas int, now time.Time) {
	var there []*podPlayed
	for _, d := range p.pods {
		if d.leaves.IsZero() {
			there = append(there, d)
		}
	}
	for n := len(there); n < replicas; n++ {
		p.create(now)
	}
	for ; len(there) > replicas; there = there[:len(there)-1] {
		last := len(there) - 1
		for i := range there {
			if sooner(there[i], there[last]) {
				there[i], there[last] = there[last], there[i]
			}
		}
		p.remove(there[last], now)
	}
}

func (p *play) create(now time.Time) {
	p.outcome.made++
	p.pods = append(p.pods, &podPlayed{name: fmt.Sprintf("checkout-%06d", p.outcome.made), created: now})
}

// sooner tells whether a pod is removed before another.
func sooner(a, b *podPlayed) bool {
	switch {
	case (a.on == nil) != (b.on == nil):
		return a.on == nil
	case a.on != nil && a.on.pods != b.on.pods:
		return a.on.pods > b.on.pods
	}
	return a.name > b.name
}

func (p *play) remove(d *podPlayed, now time.Time) {
	if d.on != nil {
		d.on.pods--
	} else {
		p.outcome.waited(p, d, now)
	}
	p.pods = slices.DeleteFunc(p.pods, func(other *podPlayed) bool { return other == d })
}

// schedule binds pods, in order, to the first node with room.
func (p *play) schedule(now time.Time) {
	full := false
	for _, d := range p.pods {
		if d.on != nil {
			continue
		}
		if !full {
			d.on = p.room()
		}
		if d.on == nil { // nor is there any for the next, which is as large
			full = true
			if d.created.Equal(now) {
				p.wake()
			}
			continue
		}
		d.on.pods++
		p.outcome.waited(p, d, now)
	}
}

func (p *play) room() *machine {
	for _, m := range p.machines {
		if m.ready() && m.mark == "" && !m.cordon && m.pods < podsPerNode {
			return m
		}
	}
	return nil
}

func (m *machine) ready() bool { return m.node != nil && m.endedAt.IsZero() }

func (p *play) wake() {
	select {
	case p.wakes <- struct{}{}:
	default:
	}
}

// Launch and the next five make it a provider.Provider.
func (p *play) Launch(_ context.Context, l provider.Launch) (provider.Launched, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i, ok := p.tokens[l.Token]; ok {
		return i, nil
	}
	first := provider.Launched{Instance: p.launch(l)}
	for range l.Count - 1 {
		first.Others = append(first.Others, p.launch(l))
	}
	p.tokens[l.Token] = first
	return first, nil
}

// launch launches one instance of a call.
func (p *play) launch(l provider.Launch) fleet.Instance {
	now := p.now()
	id := fmt.Sprintf("i-%06d", len(p.machines))
	m := &machine{joinsAt: now.Add(p.join(p.random)), Instance: fleet.Instance{
		ID: id, ProviderID: "play:///" + id, Action: l.Action, Slot: l.Slot, Token: l.Token, Placement: l.Placement,
		State: fleet.Pending, Launched: now,
	}}
	p.machines = append(p.machines, m)
	p.outcome.count(p, &p.outcome.launches)
	return m.Instance
}

func (p *play) List(context.Context) ([]fleet.Instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []fleet.Instance
	for _, m := range p.machines {
		switch i := m.Instance; {
		case m.endedAt.IsZero():
			out = append(out, i)
		case p.now().Sub(m.endedAt) < shutdown:
			i.State = fleet.Leaving
			out = append(out, i)
		}
	}
	return out, nil
}

func (p *play) Find(_ context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := map[string]fleet.Instance{}
	for _, ref := range refs {
		found[ref.ID] = fleet.Instance{ID: ref.ID, State: fleet.Absent}
	}
	for _, m := range p.machines {
		if _, sought := found[m.ID]; !sought {
			continue
		}
		i := m.Instance
		switch {
		case m.endedAt.IsZero():
		case p.now().Sub(m.endedAt) < shutdown:
			i.State = fleet.Leaving
		default:
			i.State = fleet.Gone
		}
		found[m.ID] = i
	}
	return found, nil
}

func (p *play) Terminate(_ context.Context, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.machines {
		if m.ID == id && m.endedAt.IsZero() {
			m.endedAt = p.now()
			p.outcome.count(p, &p.outcome.removals)
			p.wake()
		}
	}
	return nil
}

func (p *play) MarkJoinFailed(context.Context, string) error {
	return errors.New("every instance joins")
}

func (p *play) Offers(context.Context) ([]provider.Offer, error) {
	var out []provider.Offer
	for _, zone := range []string{"a", "b", "c"} {
		out = append(out, provider.Offer{
			Offer: fleet.Offer{Zone: zone, Subnet: "subnet-" + zone,
				InstanceType: instanceType}, Allocatable: nodeShape,
			Labels: map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelInstanceTypeStable: instanceType},
		})
	}
	return out, nil
}

// Observe and Wake make it an observe.Cluster.
func (p *play) Observe(context.Context) (*cluster.Cluster, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &cluster.Cluster{At: p.now()}
	for _, m := range p.machines {
		if m.node == nil {
			continue
		}
		c.Nodes = append(c.Nodes, cluster.Node{
			Object: m.node, Ready: m.ready(), ReadySince: m.since, Requested: requestsOf(m.pods), Movable: m.pods,
			Pods: make([]*cluster.Pod, 0),
		})
	}
	for _, d := range p.pods {
		if d.on == nil {
			c.Pending = append(c.Pending, cluster.Pending{Since: d.created, Pod: pendingPod(d.name)})
		}
	}
	return c, nil
}

func (p *play) Wake() <-chan struct{} { return p.wakes }

// requestsOf is what a number of pods request.
func requestsOf(pods int) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range podRequests {
		quantity.Mul(int64(pods))
		out[name] = quantity
	}
	return out
}

func pendingPod(name string) *corev1.Pod {
	controller := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": "checkout"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "checkout", UID: "checkout",
				Controller: &controller}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    podRequests[corev1.ResourceCPU],
				corev1.ResourceMemory: podRequests[corev1.ResourceMemory],
			}}}}},
	}
}

var (
	_ provider.Provider = (*play)(nil)
	_ observe.Cluster   = (*play)(nil)
)

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/signal"
	"github.com/foresail/foresail/nodepool/state"
)

// errLost is the error of a lost answer.
var errLost = errors.New("the answer got lost")

// clock is a time that tests move, or the real one, which is virtual in a bubble.
type clock struct {
	real bool
	mu   sync.Mutex
	at   time.Time
}

func (c *clock) now() time.Time {
	if c.real {
		return time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// fakeStore keeps records as their JSON holds them, as real ones do.
type fakeStore struct {
	mu      sync.Mutex
	records map[string]state.Record // as decoded; callers get copies
	// before and after are called around each write, with the new record. An error prevents the write,
	// or loses its answer.
	before, after func(state.Record) error
	loadErr       error
	written       func(old, written state.Record)
	size, limit   int // bytes of the last record, and the most that is taken; 0 = any
}

func (s *fakeStore) Load(_ context.Context, pool string) (state.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loadErr != nil {
		return state.Record{}, s.loadErr
	}
	return s.records[pool].Clone(), nil
}

func (s *fakeStore) Save(_ context.Context, pool string, r state.Record) (state.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loadErr != nil {
		return state.Record{}, s.loadErr
	}
	if s.before != nil {
		if err := s.before(r); err != nil {
			return state.Record{}, err
		}
	}
	old := s.records[pool]
	if old.Version != r.Version {
		return state.Record{}, state.ErrConflict
	}
	r.Version++
	data, err := state.Encode(r)
	if err != nil {
		panic(err)
	}
	s.size = len(data)
	if s.limit > 0 && len(data) > s.limit {
		return state.Record{}, fmt.Errorf("%d bytes: %w", len(data), state.ErrTooLarge)
	}
	if s.records == nil {
		s.records = map[string]state.Record{}
	}
	if r, err = state.Decode(data); err != nil {
		panic(err)
	}
	s.records[pool] = r
	if s.written != nil {
		s.written(old, r)
	}
	if s.after != nil {
		if err := s.after(r); err != nil {
			return state.Record{}, err
		}
	}
	return r.Clone(), nil
}

// fakePod is a pod that is bound to a node.
type fakePod struct {
	name    string
	blocks  string    // why it must not be evicted
	refused string    // why a budget rejects its eviction
	leaves  time.Time // it is gone from then on; zero: it stays
}

// fakeNode is a Node with its pods.
type fakeNode struct {
	object *corev1.Node
	ready  bool
	since  time.Time
	mark   string
	cordon bool
	pods   []*fakePod
	free   bool     // nothing is requested of it
	holds  []string // volumes that are attached to it
	silent bool     // its kubelet has stopped, unnoticed
	stuck  bool     // its kubelet has stopped: no pod is ever seen to have ended
	beat   time.Time

	conditions []corev1.NodeCondition // in addition to Ready
	status     corev1.ConditionStatus // of Ready while it is not ready; "" = Unknown
	changed    time.Time              // when the status of Ready changed last, by the clock of its writer
}

// fakeWorld is a cloud and a cluster. Instances join the cluster as nodes.
type fakeWorld struct {
	// namedByToken names instances by their calls, which may be made in any order.
	namedByToken bool

	mu    sync.Mutex
	clock *clock

	instances  map[string]*fakeInstance
	tokens     map[string][]*fakeInstance
	used       map[string]error            // tokens that launched nothing, and never will
	launches   int                         // instances
	calls      int                         // of Launch
	capacity   func(provider.Launch) error // why a launch is rejected
	lost       func(provider.Launch) error // the answer to a launch
	visibility time.Duration               // until a launched instance is listed
	joinDelay  time.Duration
	leaving    time.Duration // how long a terminated instance is listed still
	joins      func(provider.Launch) bool
	dress      func(*fakeNode) // changes what nodes join as
	listErr    error
	findErr    error
	termErr    error
	offers     []provider.Offer
	offersErr  error

	nodes      map[string]*fakeNode
	pending    []cluster.Pending
	objects    []runtime.Object // pods and whatever they use: with any, clusters are read from them and the nodes alone
	workloads  *workloads       // with any, pods are theirs
	observeErr error
	arriving   bool // some pod has no node yet
	drainErr   error
	podGrace   time.Duration // how long evicted pods take
	evictTakes time.Duration // how long a request of evictions takes
	violations []string
	terminated []string
	past       map[string]bool // instances whose deadline has passed, so that they may go with pods
	wakes      chan struct{}
}

type fakeInstance struct {
	fleet.Instance
	launch  provider.Launch
	endedAt time.Time // zero: it runs
	joined  bool
	hidden  bool // lists lack it

	untagged bool // it has lost its tags
}

func newWorld(c *clock) *fakeWorld {
	w := &fakeWorld{
		clock: c, instances: map[string]*fakeInstance{}, tokens: map[string][]*fakeInstance{}, used: map[string]error{},
		nodes:     map[string]*fakeNode{},
		joinDelay: 30 * time.Second, podGrace: 2 * time.Second, past: map[string]bool{}, wakes: make(chan struct{}, 1),
	}
	for _, zone := range []string{"a", "b"} {
		w.offers = append(w.offers, provider.Offer{
			Offer:       fleet.Offer{Zone: zone, Subnet: "subnet-" + zone, InstanceType: "t3.medium"},
			Allocatable: shape, Labels: map[string]string{corev1.LabelTopologyZone: zone,
				corev1.LabelInstanceTypeStable: "t3.medium"},
		})
	}
	return w
}

var shape = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
	corev1.ResourcePods: resource.MustParse("110"),
}

// settle applies due changes: nodes join, pods end, instances end.
func (w *fakeWorld) settle() {
	now := w.clock.now()
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		i := w.instances[id]
		if !i.joined && i.endedAt.IsZero() && (w.joins == nil || w.joins(i.launch)) && now.Sub(i.Launched) >= w.joinDelay {
			i.joined, i.State = true, fleet.Running
			w.addNode(i, now)
		}
		if !i.endedAt.IsZero() {
			if n := w.nodes["node-"+i.ID]; n != nil {
				n.ready = false
			}
		}
	}
	if w.workloads != nil {
		w.workloads.settle()
	}
	for _, n := range w.nodes {
		n.pods = slices.DeleteFunc(n.pods,
			func(p *fakePod) bool { return !n.stuck && !p.leaves.IsZero() && !now.Before(p.leaves) })
	}
}

func (w *fakeWorld) addNode(i *fakeInstance, now time.Time) {
	n := &fakeNode{ready: true, since: now, object: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + i.ID, UID: types.UID("uid-" + i.ID),
			CreationTimestamp: metav1.NewTime(now), Labels: map[string]string{
				corev1.LabelTopologyZone: i.Zone, corev1.LabelInstanceTypeStable: i.InstanceType,
			}},
		Spec:   corev1.NodeSpec{ProviderID: i.ProviderID},
		Status: corev1.NodeStatus{Allocatable: shape.DeepCopy(), Capacity: shape},
	}}
	if w.dress != nil {
		w.dress(n)
	}
	w.nodes["node-"+i.ID] = n
}

// add adds workers that joined long ago, spread over the zones.
func (w *fakeWorld) add(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range n {
		id := fmt.Sprintf("i-old%d", k)
		i := &fakeInstance{joined: true, Instance: fleet.Instance{
			ID: id, ProviderID: "fake:///" + id, State: fleet.Running,
			Launched:  w.clock.now().Add(-24*time.Hour + time.Duration(k)*time.Second),
			Placement: fleet.Placement{Zone: string(rune('a' + k%2)), InstanceType: "t3.medium", Market: fleet.OnDemand},
		}}
		w.instances[id] = i
		w.addNode(i, w.clock.now().Add(-23*time.Hour))
	}
}

func (w *fakeWorld) Launch(_ context.Context, l provider.Launch) (provider.Launched, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	if known := w.tokens[l.Token]; len(known) > 0 {
		if !reflect.DeepEqual(known[0].launch, l) {
			return provider.Launched{},
				&provider.Error{Class: provider.TokenMismatch, Op: "Launch", Err: errors.New("other parameters")}
		}
		return together(known, nil), nil
	}
	if err := w.used[l.Token]; err != nil {
		return provider.Launched{}, err
	}
	var refusals []provider.Refusal
	for range max(1, l.Count) {
		at, refused, err := w.choose(l)
		if err != nil && len(w.tokens[l.Token]) == 0 {
			return provider.Launched{}, err
		}
		if err != nil {
			break
		}
		refusals = refused
		w.launches++
		id := fmt.Sprintf("i-%d", w.launches)
		if w.namedByToken {
			id = fmt.Sprintf("i-%s-%d", l.Token, len(w.tokens[l.Token]))
		}
		i := &fakeInstance{launch: l, Instance: fleet.Instance{
			ID: id, ProviderID: "fake:///" + id, Action: l.Action, Slot: l.Slot, Token: l.Token, Placement: at,
			State: fleet.Pending, Launched: w.clock.now(),
		}}
		w.instances[id], w.tokens[l.Token] = i, append(w.tokens[l.Token], i)
	}
	if w.lost != nil {
		if err := w.lost(l); err != nil {
			return provider.Launched{}, err
		}
	}
	return together(w.tokens[l.Token], refusals), nil
}

// together returns the instances of one call.
func together(list []*fakeInstance, refusals []provider.Refusal) provider.Launched {
	first := provider.Launched{Instance: list[0].Instance, Refusals: refusals}
	for _, i := range list[1:] {
		first.Others = append(first.Others, i.Instance)
	}
	return first
}

// choose returns the first available type of a launch. A launch with alternatives uses its token
// up if there is none.
func (w *fakeWorld) choose(l provider.Launch) (at fleet.Placement, refusals []provider.Refusal, err error) {
	if w.capacity == nil {
		return l.Placement, nil, nil
	}
	for _, kind := range append([]string{l.InstanceType}, l.Alternatives...) {
		one := l
		one.InstanceType = kind
		err = w.capacity(one)
		switch class := provider.ClassOf(err); {
		case err == nil:
			return one.Placement, refusals, nil
		case len(l.Alternatives) == 0, class != provider.Capacity && class != provider.Quota && class != provider.Address:
			return fleet.Placement{}, nil, err
		default:
			refusals = append(refusals, provider.Refusal{InstanceType: kind, Class: class, Reason: err.Error()})
		}
	}
	err = &provider.Error{Class: refusals[0].Class, Op: "Launch", Err: err, Refusals: refusals}
	w.used[l.Token] = err
	return fleet.Placement{}, nil, err
}

func (w *fakeWorld) List(context.Context) ([]fleet.Instance, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listErr != nil {
		return nil, w.listErr
	}
	w.settle()
	var out []fleet.Instance
	for _, i := range w.instances {
		switch now := w.clock.now(); {
		case i.hidden, i.untagged:
		case i.Stopped && i.endedAt.IsZero():
			stopped := i.Instance
			stopped.State = fleet.Leaving
			out = append(out, stopped)
		case !i.endedAt.IsZero() && now.Sub(i.endedAt) >= w.leaving:
		case !i.endedAt.IsZero():
			leaving := i.Instance
			leaving.State, leaving.Stopped = fleet.Leaving, false
			out = append(out, leaving)
		case now.Sub(i.Launched) >= w.visibility:
			out = append(out, i.Instance)
		}
	}
	return out, nil
}

func (w *fakeWorld) Find(_ context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.findErr != nil {
		return nil, w.findErr
	}
	w.settle()
	out := map[string]fleet.Instance{}
	for _, ref := range refs {
		i := w.instances[ref.ID]
		switch now := w.clock.now(); {
		case i == nil:
			out[ref.ID] = fleet.Instance{ID: ref.ID, State: fleet.Absent}
		case now.Sub(i.Launched) < w.visibility:
		default:
			found := i.Instance
			switch {
			case w.gone(i):
				found.State = fleet.Gone
			case !i.endedAt.IsZero(), i.Stopped:
				found.State = fleet.Leaving
			}
			if i.untagged {
				found.Disowned = "its tag pool is missing"
			}
			out[ref.ID] = found
		}
	}
	return out, nil
}

// gone reports whether nothing runs on an instance any more.
func (w *fakeWorld) gone(i *fakeInstance) bool {
	return !i.endedAt.IsZero() && w.clock.now().Sub(i.endedAt) >= w.leaving
}

func (w *fakeWorld) Terminate(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.termErr != nil {
		return w.termErr
	}
	w.settle()
	i, ok := w.instances[id]
	if !ok || i.untagged || i.OwnedBy != "" {
		return &provider.Error{Class: provider.NotOwned, Op: "Terminate", Err: errors.New(id)}
	}
	if n := w.nodes["node-"+id]; n != nil && len(n.pods) > 0 && !w.past[id] && (!n.stuck || n.ready) {
		w.violations = append(w.violations, fmt.Sprintf("%s terminated with %d pods", id, len(n.pods)))
	}
	if w.workloads != nil && w.workloads.movable("node-"+id) > 0 && !w.past[id] {
		w.violations = append(w.violations, fmt.Sprintf("%s terminated with pods", id))
	}
	if i.endedAt.IsZero() {
		i.endedAt = w.clock.now()
		w.terminated = append(w.terminated, id)
	}
	return nil
}

func (w *fakeWorld) MarkJoinFailed(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instances[id].JoinFailed = true
	return nil
}

func (w *fakeWorld) Offers(context.Context) ([]provider.Offer, error) { return w.offers, w.offersErr }

func (w *fakeWorld) Observe(ctx context.Context) (*cluster.Cluster, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.observeErr != nil {
		return nil, w.observeErr
	}
	w.settle()
	c := &cluster.Cluster{At: w.clock.now(), Pending: slices.Clone(w.pending)}
	for _, n := range w.nodes {
		shared := *n.object // a shallow copy is enough: the pool changes no Node
		object := &shared
		object.Spec.Unschedulable = n.cordon || n.object.Spec.Unschedulable
		if n.cordon {
			object.Annotations = map[string]string{drain.CordonedBy: "foresail"}
		}
		if n.mark != "" {
			object.Spec.Taints = append(slices.Clone(object.Spec.Taints),
				corev1.Taint{Key: drain.Mark, Value: n.mark, Effect: corev1.TaintEffectNoSchedule})
		}
		if n.ready && !n.silent {
			n.beat = w.clock.now()
		}
		ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
			LastHeartbeatTime: metav1.NewTime(n.beat), LastTransitionTime: metav1.NewTime(n.changed)}
		switch {
		case n.ready:
			ready.Status = corev1.ConditionTrue
		case n.status != "":
			ready.Status = n.status
		}
		object.Status.Conditions = append([]corev1.NodeCondition{ready}, n.conditions...)
		one := cluster.Node{Object: object, Ready: n.ready, ReadySince: n.since, Joined: n.since, Movable: len(n.pods),
			Requested: corev1.ResourceList{corev1.ResourceCPU: shape[corev1.ResourceCPU]}}
		if n.free {
			one.Requested = nil
		}
		for _, p := range n.pods {
			if p.blocks != "" {
				one.Blocked = p.blocks
			}
		}
		c.Nodes = append(c.Nodes, one)
	}
	slices.SortFunc(c.Nodes, func(a, b cluster.Node) int { return cmpNames(a.Object.Name, b.Object.Name) })
	objects := slices.Clone(w.objects)
	if w.workloads != nil {
		objects = append(objects, w.workloads.objects()...)
	}
	if len(objects) == 0 {
		return c, nil
	}
	for _, n := range c.Nodes {
		objects = append(objects, n.Object)
	}
	return cluster.List(ctx, fake.NewClientset(objects...), w.clock.now())
}

func cmpNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (w *fakeWorld) Wake() <-chan struct{} { return w.wakes }

// on runs do on a node.
func (w *fakeWorld) on(name string, do func(*fakeNode)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drainErr != nil {
		return w.drainErr
	}
	w.settle()
	n, ok := w.nodes[name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, name)
	}
	do(n)
	return nil
}

func (w *fakeWorld) Taint(_ context.Context, node, action string) error {
	return w.on(node, func(n *fakeNode) { n.mark = action })
}

func (w *fakeWorld) Cordon(_ context.Context, node string) error {
	return w.on(node, func(n *fakeNode) { n.cordon = true })
}

func (w *fakeWorld) Restore(_ context.Context, node string) error {
	err := w.on(node, func(n *fakeNode) { n.mark, n.cordon = "", false })
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (w *fakeWorld) Blockers(_ context.Context, node string) (why []string, err error) {
	err = w.on(node, func(n *fakeNode) {
		for _, p := range n.pods {
			if p.blocks != "" {
				why = append(why, p.name+" "+p.blocks)
			}
		}
	})
	return why, err
}

func (w *fakeWorld) Attached(context.Context) (map[string][]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string][]string{}
	for name, n := range w.nodes {
		out[name] = slices.Clone(n.holds)
	}
	return out, w.drainErr
}

func (w *fakeWorld) Arriving(context.Context) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arriving, w.drainErr
}

func (w *fakeWorld) Evict(_ context.Context, node string, l drain.Limits) (progress drain.Progress, err error) {
	w.clock.advance(w.evictTakes)
	err = w.on(node, func(n *fakeNode) {
		if w.workloads != nil {
			progress = w.workloads.evict(node, l)
		}
		progress.Remaining += len(n.pods)
		for _, p := range n.pods {
			switch {
			case !p.leaves.IsZero():
			case l.Force, !l.Ends.IsZero() && (p.blocks == "" || l.EndsAll) && !w.clock.now().Add(w.podGrace).Before(l.Ends):
				p.leaves = w.clock.now().Add(w.podGrace)
			case p.blocks != "":
				progress.Blocked = append(progress.Blocked, p.name+": "+p.blocks)
			case p.refused != "":
				progress.Refused = append(progress.Refused, p.name+": "+p.refused)
			default:
				p.leaves = w.clock.now().Add(w.podGrace)
			}
		}
	})
	if apierrors.IsNotFound(err) {
		return progress, nil // no node, no pods: the real implementation lists pods
	}
	return progress, err
}

func (w *fakeWorld) NodeOf(_ context.Context, providerID, instanceID string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drainErr != nil {
		return "", w.drainErr
	}
	for name, n := range w.nodes {
		if id := n.object.Spec.ProviderID; id == providerID || provider.IDOf(id) == instanceID {
			return name, nil
		}
	}
	return "", nil
}

func (w *fakeWorld) DeleteNode(_ context.Context, node, providerID string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drainErr != nil {
		return w.drainErr
	}
	if n := w.nodes[node]; n != nil && provider.Same(n.object.Spec.ProviderID, providerID) {
		if i := w.instances[provider.IDOf(providerID)]; i != nil && !w.gone(i) {
			w.violations = append(w.violations, fmt.Sprintf("node %s is deleted while its instance runs", node))
		}
		delete(w.nodes, node)
	}
	return nil
}

func (w *fakeWorld) Label(_ context.Context, node string, labels map[string]string) error {
	return w.on(node, func(n *fakeNode) {
		n.object.Labels = maps.Clone(n.object.Labels)
		maps.Copy(n.object.Labels, labels)
	})
}

// fakeSignals returns the signals that a test sets.
type fakeSignals struct {
	mu      sync.Mutex
	signals []plan.Signal
	// there is one signal, of a level that all workers there are keep between its threshold and what
	// is too many
	level bool
	seen  signal.Observation // the last one
}

func (s *fakeSignals) Observe(_ context.Context, o signal.Observation) []plan.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = o
	if s.level {
		needs := o.Expected
		if o.WorkersBeforeRollout > 0 {
			needs = min(needs, o.WorkersBeforeRollout)
		}
		return []plan.Signal{{Name: "latency", Known: true, Now: 0.6, Predicted: 0.6, Threshold: 0.7, Desired: o.Expected,
			Fits: o.Expected, Needs: needs}}
	}
	return s.signals
}

func (s *fakeSignals) Seasonal(context.Context, time.Time, time.Duration) *plan.Seasonal { return nil }

// fakeNotices is a queue.
type fakeNotices struct {
	mu       sync.Mutex
	messages []provider.Message
	done     []provider.Message
	doneErr  error
}

func (q *fakeNotices) Receive(ctx context.Context) ([]provider.Message, error) {
	q.mu.Lock()
	out := q.messages
	q.messages = nil
	q.mu.Unlock()
	if len(out) > 0 {
		return out, nil
	}
	sleep(ctx, 20*time.Second)
	return nil, ctx.Err()
}

func (q *fakeNotices) Done(_ context.Context, m provider.Message) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.doneErr == nil {
		q.done = append(q.done, m)
	}
	return q.doneErr
}

// mortalStore is the store of a process that can be killed.
type mortalStore struct {
	*fakeStore
	k *killer
}

func (s mortalStore) Save(ctx context.Context, pool string, r state.Record) (out state.Record, err error) {
	err = s.k.act(func() error {
		out, err = s.fakeStore.Save(ctx, pool, r)
		return err
	})
	return out, err
}

// mortalWorld is the cloud and the cluster as such a process sees them.
type mortalWorld struct {
	*fakeWorld
	k *killer
}

func (w mortalWorld) Launch(ctx context.Context, l provider.Launch) (out provider.Launched, err error) {
	err = w.k.act(func() error {
		out, err = w.fakeWorld.Launch(ctx, l)
		return err
	})
	return out, err
}

func (w mortalWorld) Terminate(ctx context.Context, id string) error {
	return w.k.act(func() error { return w.fakeWorld.Terminate(ctx, id) })
}

func (w mortalWorld) MarkJoinFailed(ctx context.Context, id string) error {
	return w.k.act(func() error { return w.fakeWorld.MarkJoinFailed(ctx, id) })
}

func (w mortalWorld) Taint(ctx context.Context, node, action string) error {
	return w.k.act(func() error { return w.fakeWorld.Taint(ctx, node, action) })
}

func (w mortalWorld) Cordon(ctx context.Context, node string) error {
	return w.k.act(func() error { return w.fakeWorld.Cordon(ctx, node) })
}

func (w mortalWorld) Restore(ctx context.Context, node string) error {
	return w.k.act(func() error { return w.fakeWorld.Restore(ctx, node) })
}

func (w mortalWorld) Evict(ctx context.Context, node string, l drain.Limits) (out drain.Progress, err error) {
	err = w.k.act(func() error {
		out, err = w.fakeWorld.Evict(ctx, node, l)
		return err
	})
	return out, err
}

func (w mortalWorld) DeleteNode(ctx context.Context, node, providerID string) error {
	return w.k.act(func() error { return w.fakeWorld.DeleteNode(ctx, node, providerID) })
}

func (w mortalWorld) Label(ctx context.Context, node string, labels map[string]string) error {
	return w.k.act(func() error { return w.fakeWorld.Label(ctx, node, labels) })
}

// mortalNotices is the queue of such a process.
type mortalNotices struct {
	*fakeNotices
	k *killer
}

func (q mortalNotices) Done(ctx context.Context, m provider.Message) error {
	return q.k.act(func() error { return q.fakeNotices.Done(ctx, m) })
}

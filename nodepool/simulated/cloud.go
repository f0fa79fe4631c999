package simulated

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// InstanceType is the only instance type that the cloud offers.
const InstanceType = v1alpha1.SimulatedInstanceType

// Options configure a [Cloud].
type Options struct {
	Client kubernetes.Interface
	Pool   string
	Spec   v1alpha1.SimulatedProvider // absent fields have their defaults
	Labels map[string]string          // of new Nodes, in addition to their zone, type and architecture
	Taints []corev1.Taint             // of new Nodes
	Now    func() time.Time
	// Jitter is the share, in [0, 1), by which the join delay varies; Seed decides for each instance.
	Jitter float64
	Seed   uint64
	// Kubelet makes joined Nodes Ready and schedulable, where neither kwok nor the controller manager runs.
	Kubelet bool
}

// Cloud is one pool's part of a simulated cloud. Its methods may be called concurrently, from any number of processes.
type Cloud struct {
	options Options
	store   *store
	stepper *stepper
	shape   corev1.ResourceList
}

var _ provider.Provider = (*Cloud)(nil)

// New returns the cloud of a pool. It makes no request to the API server.
func New(o Options) *Cloud {
	o.Spec.Default()
	c := &Cloud{
		options: o,
		store:   &store{client: o.Client.CoreV1(), namespace: o.Spec.Namespace, pool: o.Pool},
		shape:   corev1.ResourceList{},
	}
	c.stepper = &stepper{store: c.store, nodes: &nodes{
		client: o.Client.CoreV1().Nodes(), labels: o.Labels, taints: o.Taints, kubelet: o.Kubelet,
	}}
	for name, quantity := range o.Spec.Shape {
		c.shape[corev1.ResourceName(name)] = quantity
	}
	return c
}

// begin returns the faults of the cloud; an error if the call must fail.
func (c *Cloud) begin(ctx context.Context, op string) (faults, error) {
	object, err := c.store.faults(ctx)
	if err != nil {
		return faults{}, failure(op, err)
	}
	f, err := faultsOf(object)
	if err != nil {
		return faults{}, failure(op, fmt.Errorf("ConfigMap %s/%s: %w", object.Namespace, object.Name, err))
	}
	return f, f.failure(op)
}

// Launch implements [provider.Provider].
func (c *Cloud) Launch(ctx context.Context, l provider.Launch) (provider.Launched, error) {
	faults, err := c.begin(ctx, "Launch")
	if err != nil {
		return provider.Launched{}, err
	}
	first, err := c.launch(ctx, l, 0, faults)
	for n := 1; err == nil && n < l.Count; n++ {
		other, err := c.launch(ctx, l, n, faults)
		if err != nil {
			break // a repeated call returns the instances that exist
		}
		first.Others = append(first.Others, other.Instance)
	}
	return first, err
}

// launch launches the nth instance of a call.
func (c *Cloud) launch(ctx context.Context, l provider.Launch, n int, f faults) (provider.Launched, error) {
	const op = "Launch"
	desired := c.newInstance(l, n, f)
	var refusals []provider.Refusal
	stored, err := c.store.get(ctx, desired.id())
	if err != nil {
		return provider.Launched{}, failure(op, err)
	}
	if stored == nil {
		if refusals, err = f.choose(desired, l); err != nil {
			return provider.Launched{}, err
		}
		if stored, err = c.store.create(ctx, desired); err != nil {
			return provider.Launched{}, failure(op, err)
		}
	}
	if !stored.sameLaunch(desired) {
		err := fmt.Errorf("token %s has launched %s for slot %d of %s in pool %s as %+v",
			l.Token, stored.id(), stored.Slot, stored.Action, stored.pool(), stored.Placement)
		return provider.Launched{}, &provider.Error{Class: provider.TokenMismatch, Op: op, Code: "TokenMismatch", Err: err}
	}
	return provider.Launched{Instance: stored.public(), Refusals: refusals}, nil
}

// newInstance returns the nth instance of a call as it is launched.
func (c *Cloud) newInstance(l provider.Launch, n int, f faults) *instance {
	i := newInstance(l, n, c.options.Pool)
	i.Shape, i.Launched = c.shape, c.options.Now()
	if !f.neverJoin {
		i.JoinsAt = i.Launched.Add(c.joinDelay(i.id()))
	}
	return i
}

// joinDelay returns how long an instance takes to join: the same for the same id and seed.
func (c *Cloud) joinDelay(id string) time.Duration {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(id)) // never fails
	random := rand.New(rand.NewPCG(c.options.Seed, hash.Sum64()))
	mean := float64(c.options.Spec.JoinDelay.Duration)
	return time.Duration(mean * (1 + c.options.Jitter*(2*random.Float64()-1)))
}

// List implements [provider.Provider].
func (c *Cloud) List(ctx context.Context) ([]fleet.Instance, error) {
	const op = "List"
	faults, err := c.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	all, err := c.store.list(ctx)
	if err != nil {
		return nil, failure(op, err)
	}
	var out []fleet.Instance
	for _, i := range all {
		if i.State != terminated && !c.hides(i, faults) {
			instance := i.public()
			instance.Outdated = i.outdated(c.options.Spec.Zones, c.shape)
			out = append(out, instance)
		}
	}
	return out, nil
}

// Find implements [provider.Provider].
func (c *Cloud) Find(ctx context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error) {
	const op = "Find"
	faults, err := c.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	found := map[string]fleet.Instance{}
	for _, ref := range refs {
		if !strings.HasPrefix(ref.ID, "i-") {
			continue
		}
		i, err := c.store.get(ctx, ref.ID)
		switch {
		case err != nil:
			return nil, failure(op, err)
		case i == nil:
			found[ref.ID] = fleet.Instance{ID: ref.ID, State: fleet.Absent}
		case c.hides(i, faults):
		default:
			found[ref.ID] = c.found(i)
		}
	}
	return found, nil
}

// hides reports whether an instance was launched too recently to be listed.
func (c *Cloud) hides(i *instance, f faults) bool {
	return c.options.Now().Before(i.Launched.Add(f.hiddenFor))
}

// found returns a stored instance of any pool, in its present state.
func (c *Cloud) found(i *instance) fleet.Instance {
	found := i.public()
	if i.State == terminated {
		found.State = fleet.Gone
	}
	if i.pool() != c.options.Pool {
		found.Disowned = fmt.Sprintf("it is an instance of pool %q, not %q", i.pool(), c.options.Pool)
	}
	return found
}

// Terminate implements [provider.Provider].
func (c *Cloud) Terminate(ctx context.Context, id string) error {
	return c.change(ctx, "Terminate", id, func(i *instance) {
		if !i.ending() {
			i.end(c.options.Now(), shutdown)
		}
	})
}

// MarkJoinFailed implements [provider.Provider]. It succeeds for an instance that no longer exists.
func (c *Cloud) MarkJoinFailed(ctx context.Context, id string) error {
	return c.change(ctx, "MarkJoinFailed", id, func(i *instance) { i.JoinFailed = true })
}

// change changes an instance of the pool; an unknown id is no error.
func (c *Cloud) change(ctx context.Context, op, id string, change func(*instance)) error {
	if _, err := c.begin(ctx, op); err != nil {
		return err
	}
	for {
		i, err := c.store.get(ctx, id)
		switch {
		case err != nil:
			return failure(op, err)
		case i == nil:
			return nil
		case i.pool() != c.options.Pool:
			err := fmt.Errorf("%s is an instance of pool %s", id, i.pool())
			return &provider.Error{Class: provider.NotOwned, Op: op, Code: "NotOwned", Err: err}
		}
		change(i)
		if err := c.store.update(ctx, i); !apierrors.IsConflict(err) {
			return failure(op, err)
		}
	}
}

// Offers implements [provider.Provider]: one instance type in each zone.
func (c *Cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	if err := ctx.Err(); err != nil {
		return nil, failure("Offers", err)
	}
	var out []provider.Offer
	for _, zone := range c.options.Spec.Zones {
		out = append(out, provider.Offer{
			Offer:       fleet.Offer{Zone: zone, InstanceType: InstanceType},
			Allocatable: c.shape.DeepCopy(),
			Labels:      nodeLabels(zone, InstanceType, c.options.Labels),
		})
	}
	return out, nil
}

// Messages returns the cloud's messages about the pool's instances that are not done yet.
func (c *Cloud) Messages(ctx context.Context) ([]provider.Message, error) {
	all, err := c.store.list(ctx)
	if err != nil {
		return nil, failure("Messages", err)
	}
	var out []provider.Message
	for _, i := range all {
		out = append(out, i.messages()...)
	}
	return out, nil
}

// Done keeps a message from being returned again. It may be repeated.
func (c *Cloud) Done(ctx context.Context, m provider.Message) error {
	const op = "Done"
	for {
		i, err := c.store.get(ctx, m.InstanceID)
		if err != nil || i == nil {
			return failure(op, err)
		}
		i.messageDone(m)
		if err := c.store.update(ctx, i); !apierrors.IsConflict(err) {
			return failure(op, err)
		}
	}
}

// Run advances the cloud in real time until the context ends. Failed steps are logged; later ones catch up.
func (c *Cloud) Run(ctx context.Context) error { return c.stepper.run(ctx, c.options.Now) }

// Step advances every instance of the pool to a time.
func (c *Cloud) Step(ctx context.Context, now time.Time) error { return c.stepper.step(ctx, now) }

// failure classifies an error of the API server as an error of the cloud.
func failure(op string, err error) error {
	if err == nil {
		return nil
	}
	class := provider.Unknown
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		class = provider.Invalid
	case apierrors.IsTooManyRequests(err):
		class = provider.Throttled
	}
	return &provider.Error{Class: class, Op: op, Code: string(apierrors.ReasonForError(err)), Err: err}
}

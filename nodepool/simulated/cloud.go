package simulated

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/provider"
)

// InstanceType is the only type of instance that there is.
const InstanceType = v1alpha1.SimulatedInstanceType

// Options of a Cloud.
type Options struct {
	Client kubernetes.Interface
	Pool   string
	Spec   v1alpha1.SimulatedProvider // absent fields have their defaults
	Labels map[string]string          // of new Nodes, beside those of their zone, type and architecture
	Taints []corev1.Taint             // of new Nodes
	Now    func() time.Time
	// Jitter is by how much of the join delay an instance may be earlier or later, in [0, 1); Seed decides for each.
	Jitter float64
	Seed   uint64
	// Kubelet makes joined Nodes Ready, and free to schedule on, where neither kwok nor the controller manager does.
	Kubelet bool
}

// Cloud is the part of a simulated cloud that is one pool's. Its methods may be called at the same time, in any number of
// processes.
type Cloud struct {
	options   Options
	namespace string
	zones     []string
	joinDelay time.Duration
	shape     corev1.ResourceList
}

var _ provider.Provider = (*Cloud)(nil)

// New returns the cloud of a pool. It asks the API server for nothing yet.
func New(o Options) *Cloud {
	o.Spec.Default()
	c := &Cloud{options: o, namespace: o.Spec.Namespace, zones: o.Spec.Zones, joinDelay: o.Spec.JoinDelay.Duration, shape: corev1.ResourceList{}}
	for name, quantity := range o.Spec.Shape {
		c.shape[corev1.ResourceName(name)] = quantity
	}
	return c
}

// Launch launches instances, as [provider.Provider] says.
func (c *Cloud) Launch(ctx context.Context, l provider.Launch) (provider.Launched, error) {
	const op = "Launch"
	faults, err := c.faults(ctx)
	if err != nil {
		return provider.Launched{}, failure(op, err)
	}
	if err := faults.failure(op); err != nil {
		return provider.Launched{}, err
	}
	first, err := c.launch(ctx, l, 0, faults)
	for n := 1; err == nil && n < l.Count; n++ {
		other, err := c.launch(ctx, l, n, faults)
		if err != nil {
			break // there are no more; a repeated call returns those that there are
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
	stored, err := c.get(ctx, desired.id())
	if err != nil {
		return provider.Launched{}, failure(op, err)
	}
	if stored == nil {
		if refusals, err = f.choose(desired, l); err != nil {
			return provider.Launched{}, err
		}
		if stored, err = c.create(ctx, desired); err != nil {
			return provider.Launched{}, failure(op, err)
		}
	}
	if !stored.sameLaunch(desired) {
		err := fmt.Errorf("token %s has launched %s for slot %d of %s in pool %s as %+v", l.Token, stored.id(), stored.Slot, stored.Action, stored.pool(), stored.Placement)
		return provider.Launched{}, &provider.Error{Class: provider.TokenMismatch, Op: op, Code: "TokenMismatch", Err: err}
	}
	return provider.Launched{Instance: stored.told(), Refusals: refusals}, nil
}

// List returns the instances of the pool.
func (c *Cloud) List(ctx context.Context) ([]fleet.Instance, error) {
	const op = "List"
	faults, err := c.faults(ctx)
	if err != nil {
		return nil, failure(op, err)
	}
	if err := faults.failure(op); err != nil {
		return nil, err
	}
	all, err := c.list(ctx)
	if err != nil {
		return nil, failure(op, err)
	}
	var out []fleet.Instance
	for _, i := range all {
		if i.State != terminated && !c.hides(i, faults) {
			instance := i.told()
			instance.Outdated = i.outdated(c.zones, c.shape)
			out = append(out, instance)
		}
	}
	return out, nil
}

// Find looks instances up by their ids, as [provider.Provider] says.
func (c *Cloud) Find(ctx context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error) {
	const op = "Find"
	faults, err := c.faults(ctx)
	if err != nil {
		return nil, failure(op, err)
	}
	if err := faults.failure(op); err != nil {
		return nil, err
	}
	found := map[string]fleet.Instance{}
	for _, ref := range refs {
		if !strings.HasPrefix(ref.ID, "i-") {
			continue
		}
		i, err := c.get(ctx, ref.ID)
		switch {
		case err != nil:
			return nil, failure(op, err)
		case i == nil:
			found[ref.ID] = fleet.Instance{ID: ref.ID, State: fleet.Absent}
		case c.hides(i, faults):
		default:
			found[ref.ID] = c.foundAs(i)
		}
	}
	return found, nil
}

// hides reports whether an instance was launched too recently to be seen.
func (c *Cloud) hides(i *instance, f faults) bool {
	return c.options.Now().Before(i.Launched.Add(f.hiddenFor))
}

// foundAs returns a stored instance, of any pool, in the state that it is in.
func (c *Cloud) foundAs(i *instance) fleet.Instance {
	found := i.told()
	if i.State == terminated {
		found.State = fleet.Gone
	}
	if i.pool() != c.options.Pool {
		found.Disowned = fmt.Sprintf("it is an instance of pool %q, not %q", i.pool(), c.options.Pool)
	}
	return found
}

// Terminate terminates an instance of the pool.
func (c *Cloud) Terminate(ctx context.Context, id string) error {
	return c.change(ctx, "Terminate", id, func(i *instance) {
		if !i.gone() {
			i.leave(c.options.Now(), shutdown)
		}
	})
}

// MarkJoinFailed marks an instance of the pool. Of one that has gone nothing is left to mark.
func (c *Cloud) MarkJoinFailed(ctx context.Context, id string) error {
	return c.change(ctx, "MarkJoinFailed", id, func(i *instance) { i.JoinFailed = true })
}

// change changes an instance of the pool; an unknown ID is no error.
func (c *Cloud) change(ctx context.Context, op, id string, change func(*instance)) error {
	faults, err := c.faults(ctx)
	if err != nil {
		return failure(op, err)
	}
	if err := faults.failure(op); err != nil {
		return err
	}
	for {
		i, err := c.get(ctx, id)
		switch {
		case err != nil:
			return failure(op, err)
		case i == nil:
			return nil
		case i.pool() != c.options.Pool:
			return &provider.Error{Class: provider.NotOwned, Op: op, Code: "NotOwned", Err: fmt.Errorf("%s is an instance of pool %s", id, i.pool())}
		}
		change(i)
		if err := c.update(ctx, i); !apierrors.IsConflict(err) {
			return failure(op, err)
		}
	}
}

// Offers returns the one type of instance in each zone.
func (c *Cloud) Offers(ctx context.Context) ([]provider.Offer, error) {
	if err := ctx.Err(); err != nil {
		return nil, failure("Offers", err)
	}
	var out []provider.Offer
	for _, zone := range c.zones {
		out = append(out, provider.Offer{
			Offer:       fleet.Offer{Zone: zone, InstanceType: InstanceType},
			Allocatable: c.shape.DeepCopy(),
			Labels:      c.nodeLabels(zone, InstanceType),
		})
	}
	return out, nil
}

// failure says what an error of the API server means for what was asked of the cloud.
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

// create stores an instance, unless its token has launched one, and returns the one that is stored.
func (c *Cloud) create(ctx context.Context, i *instance) (*instance, error) {
	object, configMaps := i.object(c.namespace), c.options.Client.CoreV1().ConfigMaps(c.namespace)
	created, err := configMaps.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) { // the namespace
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
		_, err = c.options.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("make the namespace of instances: %w", err)
		}
		created, err = configMaps.Create(ctx, object, metav1.CreateOptions{})
	}
	switch {
	case apierrors.IsAlreadyExists(err):
		stored, err := c.get(ctx, i.id())
		if err == nil && stored == nil {
			err = errors.New("the instance of the token has just gone")
		}
		return stored, err
	case err != nil:
		return nil, err
	}
	return instanceOf(created)
}

// get returns the instance with an id, of whichever pool; nil if there is none.
func (c *Cloud) get(ctx context.Context, id string) (*instance, error) {
	object, err := c.options.Client.CoreV1().ConfigMaps(c.namespace).Get(ctx, id, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return instanceOf(object)
}

// list returns the instances of the pool, by id, those included that have been terminated.
func (c *Cloud) list(ctx context.Context) ([]*instance, error) {
	selector := metav1.FormatLabelSelector(metav1.SetAsLabelSelector(map[string]string{poolLabel: c.options.Pool}))
	objects, err := c.options.Client.CoreV1().ConfigMaps(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	var out []*instance
	for n := range objects.Items {
		i, err := instanceOf(&objects.Items[n])
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return out, nil
}

// update stores an instance if nobody has changed it since it was read.
func (c *Cloud) update(ctx context.Context, i *instance) error {
	_, err := c.options.Client.CoreV1().ConfigMaps(c.namespace).Update(ctx, i.object(c.namespace), metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

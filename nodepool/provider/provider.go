// Package provider is the interface of a pool of workers to a cloud. Every implementation passes the tests of
// providertest.
package provider

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/fleet"
)

// Provider launches and terminates the instances of one pool, which carry its tags. Calls may be repeated after any
// error; errors are *[Error].
type Provider interface {
	// Launch launches up to the count of the launch, or returns the instances that the same token has launched before. It
	// fails if there is none. A token belongs to its parameters permanently: other parameters are an error of class
	// [TokenMismatch]. Each instance has the tags of pool, action, slot and token from its launch on. If the launch has
	// alternatives, the cloud chooses among its types; repeated calls give them in the same order.
	Launch(ctx context.Context, l Launch) (Launched, error)
	// List returns the instances with the tags of the pool, except for those that are [fleet.Gone]. It is eventually
	// consistent: a missing instance may exist. An instance of another controller has [fleet.Instance.OwnedBy].
	List(ctx context.Context) ([]fleet.Instance, error)
	// Find returns instances by id, with any tags. An instance that the cloud does not know is [fleet.Absent]. An instance
	// in an unknown state is not in the result: its id is malformed or of another region, or it was launched so recently
	// that the cloud may not know it yet.
	Find(ctx context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error)
	// Terminate terminates an instance of the pool; it succeeds if that has happened already. An instance that is not the
	// pool's, or that another controller owns, is an error of class [NotOwned].
	Terminate(ctx context.Context, id string) error
	// MarkJoinFailed tags an instance of the pool, for users, as one whose node did not join.
	MarkJoinFailed(ctx context.Context, id string) error
	// Offers returns the types that can be launched in order of preference, with prices if these decide.
	Offers(ctx context.Context) ([]Offer, error)
}

// Launch is a call that launches instances.
type Launch struct {
	Action string // id of the scale-up
	Slot   int    // the first one within the action
	Count  int    // of instances; 0 = 1
	Token  string // at most 64 characters, unique for these parameters
	fleet.Placement
	Alternatives []string // further instance types, equally suitable
}

// Of returns the placement of the launch with one of its instance types.
func (l Launch) Of(instanceType string) fleet.Placement {
	p := l.Placement
	p.InstanceType = instanceType
	return p
}

// Launched is the result of a launch: at least one instance.
type Launched struct {
	fleet.Instance
	Others   []fleet.Instance // further ones, of a launch of several
	Refusals []Refusal        // types of the launch that could not be launched
}

// Takes reports whether an instance is one that the launch requests.
func (l Launch) Takes(i fleet.Instance) bool {
	return i.Action == l.Action && i.Slot == l.Slot && i.Token == l.Token && i.Placement == l.Of(i.InstanceType) &&
		(i.InstanceType == l.InstanceType || slices.Contains(l.Alternatives, i.InstanceType))
}

// Offer is an instance type that can be launched in a zone, with the properties of its node.
type Offer struct {
	fleet.Offer
	Allocatable corev1.ResourceList // at least CPU, memory and pods
	Labels      map[string]string   // zone, instance type, architecture, and those of the pool
	Quota       fleet.Quota         // that its instances count against
	// Price is set only if prices decide what is launched: then the cheapest offer comes first, and offers with an unknown
	// price come last, in order of preference.
	Price fleet.Price
	// PriceErr is why a price that would decide is unknown; "" if it is known or does not decide.
	PriceErr string
}

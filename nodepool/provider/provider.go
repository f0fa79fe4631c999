// Package provider says what a pool of workers needs of a cloud. Every implementation passes the tests of providertest.
package provider

import (
	"context"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"
)

// Provider launches and terminates the instances of one pool: those that carry its tag, and no others. Calls may be
// repeated after any error; errors are *[Error].
type Provider interface {
	// Launch launches as many instances as it can up to the count of the launch, or returns those that the same token
	// has launched already. It is an error if there is none. A token belongs to its parameters for good: other
	// parameters are an error of class [TokenMismatch]. Each instance carries the tags of pool, action, slot and token
	// from its first moment. If the launch has alternatives, the cloud chooses among its types; the order in which
	// they are given is the pool's, and a repeated call gives them in the same one.
	Launch(ctx context.Context, l Launch) (Launched, error)
	// List returns the instances that carry the tags of the pool, without those that are [Gone]. It is eventually consistent:
	// that an instance is missing proves nothing. An instance that another controller owns has [Instance.OwnedBy].
	List(ctx context.Context) ([]fleet.Instance, error)
	// Find looks instances up by their ids, whatever their tags, and returns them by id. An instance that the cloud denies is
	// [Absent]. One that the provider can say nothing about is not in the result: its id is malformed or of another region, or
	// it was launched so recently that the cloud may not know it yet.
	Find(ctx context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error)
	// Terminate terminates an instance of the pool; it is no error if that has happened already. An instance that is not
	// the pool's, or that another controller owns, is left alone: [NotOwned].
	Terminate(ctx context.Context, id string) error
	// MarkJoinFailed tags an instance of the pool, for people, as one whose node did not join.
	MarkJoinFailed(ctx context.Context, id string) error
	// Offers returns what can be launched, types in order of preference, with prices where these decide.
	Offers(ctx context.Context) ([]Offer, error)
}

// Launch is one call that launches instances.
type Launch struct {
	Action string // id of the scale-up
	Slot   int    // the first one within the action
	Count  int    // instances that are wanted; 0 = 1
	Token  string // at most 64 characters, unique for what is desired
	fleet.Placement
	Alternatives []string // further instance types, of which any will do as well
}

// Of returns the placement of the launch with one of its instance types.
func (l Launch) Of(instanceType string) fleet.Placement {
	p := l.Placement
	p.InstanceType = instanceType
	return p
}

// Launched is what a launch has come to: one instance at the least.
type Launched struct {
	fleet.Instance
	Others   []fleet.Instance // the further ones, of a launch of several
	Refusals []Refusal        // types of the launch that could not be launched before this one was
}

// Takes tells whether an instance is what the launch asks for.
func (l Launch) Takes(i fleet.Instance) bool {
	return i.Action == l.Action && i.Slot == l.Slot && i.Token == l.Token &&
		i.Placement == l.Of(i.InstanceType) && (i.InstanceType == l.InstanceType || slices.Contains(l.Alternatives, i.InstanceType))
}

// Offer is a kind of instance that can be launched in a zone, with the node that it becomes.
type Offer struct {
	fleet.Offer
	Allocatable corev1.ResourceList // CPU, memory and pods at the least
	Labels      map[string]string   // zone, instance type, architecture, and whatever the pool says
	Quota       fleet.Quota         // that its instances count against
	// Price is known only where it decides what is launched: then the cheapest offer that will do comes first, and those
	// whose price is not known come after the others, in order of preference.
	Price fleet.Price
	// PriceErr is why a price that would decide is not known, "" if it is or if nothing can tell.
	PriceErr string
}

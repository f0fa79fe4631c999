// Package provider says what a pool of workers needs of a cloud. Every implementation passes the tests of providertest.
package provider

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/plan"
)

// Provider launches and terminates the instances of one pool: those that carry its tag, and no others. Calls may be
// repeated after any error; errors are *[Error].
type Provider interface {
	// Launch launches as many instances as it can up to the count of the launch, or returns those that the same token
	// has launched already. It is an error if there is none. A token belongs to its parameters for good: other
	// parameters are an error of class [TokenMismatch]. Each instance carries the tags of pool, action, slot and token
	// from its first moment. If the launch has alternatives, the cloud chooses among its types; the order in which
	// they are given is the pool's, and a repeated call gives them in the same one.
	Launch(ctx context.Context, l Launch) (Instance, error)
	// List returns the instances of the pool, those that have been terminated left out as soon as the cloud says so. One
	// that has just been launched may be missing. It says which of them are outdated.
	List(ctx context.Context) ([]Instance, error)
	// Terminate terminates an instance of the pool; it is no error if that has happened already. An instance that is not
	// the pool's is left alone: [NotOwned].
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
	plan.Placement
	Alternatives []string // further instance types, of which any will do as well
}

// Of returns the placement of the launch with one of its instance types.
func (l Launch) Of(instanceType string) plan.Placement {
	p := l.Placement
	p.InstanceType = instanceType
	return p
}

// Takes tells whether an instance is what the launch asks for.
func (l Launch) Takes(i Instance) bool {
	return i.Action == l.Action && i.Slot == l.Slot && i.Token == l.Token &&
		i.Placement == l.Of(i.InstanceType) && (i.InstanceType == l.InstanceType || slices.Contains(l.Alternatives, i.InstanceType))
}

// Instance is one of the pool's, as the cloud tells it.
type Instance struct {
	ID         string
	ProviderID string // what spec.providerID of its Node is
	Action     string
	Slot       int
	Token      string
	plan.Placement
	State      InstanceState
	Launched   time.Time
	JoinFailed bool
	Stopped    bool // it is Leaving, and stopped rather than terminated: its volumes still cost, and it goes no further by itself
	// Outdated is why the instance is not what a new one of the pool would be, for people and without a full stop; "" if it
	// is, and if that is not known. Only List fills it in.
	Outdated string
	// OutdatedErr is why that is not known, "" if it is or if nothing can tell.
	OutdatedErr string
	// Others are the further instances of a launch of several. Only Launch fills it in.
	Others []Instance
	// Refusals are types of the launch that could not be launched before this one was. Only Launch fills it in.
	Refusals []Refusal
}

// InstanceState is where an instance is in its life.
type InstanceState string

// The states. What has been terminated is not listed.
const (
	Pending InstanceState = "Pending"
	Running InstanceState = "Running"
	Leaving InstanceState = "Leaving" // it stops or shuts down, whoever asked for that
)

// Offer is a kind of instance that can be launched in a zone, with the node that it becomes.
type Offer struct {
	plan.Offer
	Allocatable corev1.ResourceList // CPU, memory and pods at the least
	Labels      map[string]string   // zone, instance type, architecture, and whatever the pool says
	Quota       plan.Quota          // that its instances count against
	// Price is known only where it decides what is launched: then the cheapest offer that will do comes first, and those
	// whose price is not known come after the others, in order of preference.
	Price plan.Price
	// PriceErr is why a price that would decide is not known, "" if it is or if nothing can tell.
	PriceErr string
}

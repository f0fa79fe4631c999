package fleet

import "time"

// NoticeTime is the longest time until an interruption, and the default if its message contains
// none or an impossible one. It is the warning time of EC2 for Spot instances. A deadline in the
// past was late, or comes from a wrong clock: the drain gets this time anyway, and the cloud does
// not wait for it. A later deadline comes from a clock ahead of this one: relying on it would leave
// pods running when the instance is reclaimed.
const NoticeTime = 2 * time.Minute

// Ref identifies an instance to look up.
type Ref struct {
	ID         string
	ProviderID string // "" = unknown
}

// Instance is a machine as the cloud reports it. It is identified by its ID, and a Node belongs to
// it if the Node has its provider ID.
type Instance struct {
	ID         string
	ProviderID string // spec.providerID of its Node
	Action     string
	Slot       int
	Token      string
	Placement
	State      InstanceState
	Launched   time.Time
	JoinFailed bool
	Stopped    bool // it is Leaving, but stops or is stopped rather than terminated: it may be started again
	// Addresses are the private IP addresses and host names that a Node of the instance may report.
	Addresses []string
	// OwnedBy is another controller that owns the instance, such as an Auto Scaling group; "" = none.
	// The pool neither counts nor removes such an instance.
	OwnedBy string
	// Disowned is why the instance does not belong to the pool by its tags, "" if it does. Only Find
	// sets it.
	Disowned string
	// Outdated is how the instance differs from a new one of the pool, for people and without a full
	// stop; "" if it does not, or if that is unknown. Only List sets it.
	Outdated string
	// OutdatedErr is why that is unknown, "" if it is known or cannot be determined.
	OutdatedErr string
}

// InstanceState is the state of an instance.
type InstanceState string

// The states. List returns instances in the first three, Find in all.
const (
	Pending InstanceState = "Pending"
	Running InstanceState = "Running"
	Leaving InstanceState = "Leaving" // it stops, is stopped or shuts down; processes on it may still run
	Gone    InstanceState = "Gone"    // the cloud reports it as terminated: nothing runs on it any more
	// Absent means that the cloud knows no such instance: it was terminated long ago, or belongs to
	// another account.
	Absent InstanceState = "Absent"
)

package fleet

import "time"

// NoticeTime is the time that an interruption leaves at most, and the one assumed if its message
// gives none or an impossible one: what EC2 gives Spot instances. A deadline that has passed was
// late, or comes from a clock that is wrong; the drain gets its time all the same, and the cloud
// does not wait for it. One further ahead comes from a clock ahead of ours: to count on it would
// leave pods running when the instance goes.
const NoticeTime = 2 * time.Minute

// Ref names an instance to be looked up.
type Ref struct {
	ID         string
	ProviderID string // "" = not known
}

// Instance is a machine as the cloud reports it. Its identity is its ID; a Node is its Node if it
// has its provider ID.
type Instance struct {
	ID         string
	ProviderID string // what spec.providerID of its Node is
	Action     string
	Slot       int
	Token      string
	Placement
	State      InstanceState
	Launched   time.Time
	JoinFailed bool
	Stopped    bool // it is Leaving, and stops or is stopped rather than being terminated: it may be started again
	// Addresses are the private IP addresses and host names that a Node of the instance may report.
	Addresses []string
	// OwnedBy is another controller that keeps the instance, such as an Auto Scaling group; "" if
	// there is none. The pool neither counts nor removes such an instance.
	OwnedBy string
	// Disowned is why the tags of the instance do not make it the pool's; "" if they do. Only Find
	// fills it in.
	Disowned string
	// Outdated is why the instance is not what a new one of the pool would be, for people and
	// without a full stop; "" if it is, and if that is not known. Only List fills it in.
	Outdated string
	// OutdatedErr is why that is not known, "" if it is or if nothing can tell.
	OutdatedErr string
}

// InstanceState is where an instance is in its life.
type InstanceState string

// The states. List returns instances in the first three, Find in all.
const (
	Pending InstanceState = "Pending"
	Running InstanceState = "Running"
	Leaving InstanceState = "Leaving" // it stops, is stopped or shuts down; processes on it may still run
	Gone    InstanceState = "Gone"    // the cloud says that it is terminated: nothing runs on it any more
	// the cloud knows no such instance: it was terminated long ago, or is of another account
	Absent InstanceState = "Absent"
)

// Package observe sees the cloud, the cluster and the journal at one moment, and changes nothing. What an [Observer]
// remembers from cycle to cycle can be lost at any time.
//
// # Identity and life of an instance
//
// An instance has one identity, its id. A Node is its Node if it has its provider id. Addresses and host names make no
// match, but if they contradict the provider id, or several Nodes have it, nothing of the instance is destroyed: see
// identity.go.
//
// An instance starts, runs, leaves, and is gone. It is gone when the cloud, asked by its id, says
// that it is terminated; a list that lacks it and an accepted termination prove nothing.
//
// # Workers that do not work
//
// A worker whose Node was Ready and has not been so for longer than a join may take does not count,
// so that another takes its place: three such at most, and none while so many are unready that the
// observation cannot be trusted. It counts again when it is Ready.
//
// How long a condition of a Node has held is counted by this process alone, since it first saw the condition with this
// time of transition. So neither a wrong clock nor a process that starts late makes it look older than it is.
package observe

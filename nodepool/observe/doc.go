// Package observe reads the cloud, the cluster and the journal at one moment, and changes nothing.
// The memory of an [Observer] from cycle to cycle may be lost at any time.
//
// # Identity and life of an instance
//
// An instance is identified by its id. A Node belongs to it if the Node has its provider id.
// Addresses and host names make no match, but if they contradict the provider id, or several Nodes
// have it, nothing of the instance is removed: see identity.go.
//
// An instance starts, runs, leaves, and is gone. It is gone when the cloud, queried by its id,
// reports it as terminated. Neither a list without it nor an accepted termination is proof.
//
// # Workers that do not work
//
// A worker whose Node was Ready and has not been Ready for longer than a join may take does not
// count, so that another one is launched in its place. This applies to three workers at most, and
// to none while so many are unready that observations cannot be trusted. It counts again when it is
// Ready.
//
// The age of a condition of a Node is measured by this process alone, from the moment at which it
// first saw the condition with this transition time. So neither a wrong clock nor a new process
// makes it look older than it is.
package observe

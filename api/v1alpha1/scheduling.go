package v1alpha1

// RefusedForLoad is what the scheduler extender says of a node that it refuses a pod because of the use that is
// predicted of it. The scheduler makes it part of the message of the pod's PodScheduled condition, and by that a
// WorkerPool learns that the nodes there are have no room for the pod although their requests leave some.
const RefusedForLoad = "foresail: predicted use is above the limit"

// RefusedForRemoval is what it says of a node that a WorkerPool has committed to remove.
const RefusedForRemoval = "foresail: node is being removed"

// RefusedElsewhere is what it says in place of RefusedForLoad if another node would do, which the scheduler finds when it
// tries again. It does not contain the text of RefusedForLoad.
const RefusedElsewhere = "foresail: other nodes have room"

package v1alpha1

// FilteredForLoad is what the scheduler extender says of a node that it refuses a pod because of the use that is
// predicted of it. The scheduler makes it part of the message of the pod's PodScheduled condition, and by that a
// WorkerPool learns that the nodes there are have no room for the pod although their requests leave some.
const FilteredForLoad = "foresail: predicted use is above the limit"

// FilteredForRemoval is what it says of a node that a WorkerPool has committed to remove.
const FilteredForRemoval = "foresail: node is being removed"

// FilteredElsewhere is what it says in place of FilteredForLoad if another node would do, which the scheduler finds when it
// tries again. It does not contain the text of FilteredForLoad.
const FilteredElsewhere = "foresail: other nodes have room"

package v1alpha1

// FilteredForLoad is the message of the scheduler extender for a node that it filters because of its predicted use. The
// scheduler adds it to the message of the pod's PodScheduled condition. There a WorkerPool sees that existing nodes have no
// room for the pod although their requests leave some.
const FilteredForLoad = "foresail: predicted use is above the limit"

// FilteredForRemoval is its message for a node that a WorkerPool has committed to remove.
const FilteredForRemoval = "foresail: node is being removed"

// FilteredElsewhere is its message instead of FilteredForLoad if another node fits, which the scheduler finds when it tries
// again. It must not contain FilteredForLoad.
const FilteredElsewhere = "foresail: other nodes have room"

// Package scheduling predicts what kube-scheduler would do with pods. It answers two questions: how
// many new nodes do the pending pods need ([Pack]), and could the pods of a removed node run
// elsewhere ([Homes])?
//
// The files read from the bottom up:
//
//	input, vector, volumes   the input, and amounts of resources and volumes
//	world, refused           the nodes with their pods, and which nodes the scheduler extender refuses
//	subject, group           the pods that need a place, grouped by what they ask
//	fit, shape               whether a node could run a pod; the nodes that the pool can launch
//	terms, counter, topology the rules of pods about other pods, and pods counted by domain
//	joining, place, rules    the nodes of one packing, and what affinity and spread allow there
//	batch, leaving, packer   the search: groups of pods, those that leave their nodes, and where they go
//	result, gang, pack       how many new nodes pods need
//	homes                    whether the pods of removed nodes fit elsewhere
//
// Pods are placed as the scheduler does: those of one group together; first the groups that fewest
// offers could run, then those that keep apart, then the largest. Each goes to the first place that
// takes it: an existing node that has room after all (the scheduler has not come to it yet, or has
// a reason of its own), a node on its way, a new node that others need as well, and at last one
// more. It respects requests of all resources, slots for pods, host ports, taints, node selectors
// and required node affinity, where volumes are or may be made, required affinity and anti-affinity
// between pods in both directions, and spread constraints with DoNotSchedule, over any topology
// whose label is known of the nodes.
//
// It is approximate in these points, so that in doubt no node is launched that might not help:
//   - a selector of namespaces by label means all namespaces in an anti-affinity and none in an affinity;
//   - pods are placed group by group, never moved, never preempted;
//   - a volume that is free to be claimed is not used up by the pod that is placed where it is;
//   - pods that claim devices (dynamic resource allocation) fit nowhere: which nodes have devices is not known;
//   - a new node has no labels or taints but those of its offer and of the template, and its own
//     name. Whether it is Spot is decided later, so a pod that selects a market by label is helped
//     only if the template has that label.
//
// A pod for which there is room gets no node, however long it waits. The scheduler tries every pod
// again within five minutes, so a pod that waits longer is refused for a reason that is not known
// here. A node for it would be a guess: it helps where the reason is the node (its fill of
// volumes), but not where it is the pod (a volume or device that another pod has, a rule of another
// scheduler) or the scheduler (it is down: then all pods wait). One try would not be the last: a
// node that has not helped is empty and removed as idle, and then the same reason asks for another.
// Such pods are counted (Result.Room) and reported.
//
// A Ready node does not always take pods: an agent has yet to remove a startup taint, or a device
// plugin to register what pods request. During its time to join it counts as on its way, and
// afterwards as it is.
//
// One reason is known: the scheduler extender refuses a pod all existing nodes because of their
// predicted load. Such a pod finds no room on a node that runs pods and had joined when the pod
// became unschedulable. It does on nodes that joined later or are on their way, and on an empty
// one, which the extender never refuses. So refused pods ask for the nodes that they would need if
// every node of that moment were full, and once: if the nodes that came are refused as well, they
// have room by all that is known here, as above, and no further node follows. The extender lets
// such pods pass after some minutes.
package scheduling

// Package scheduling predicts what kube-scheduler would do with pods. It answers two questions: how
// many new nodes do the pending pods need ([Pack]), and could the pods of a removed node run
// elsewhere ([Simulator])?
//
// The files read from the bottom up:
//
//	input, vector, volumes   the input, and amounts of resources and volumes
//	world, refused           the nodes with their pods, and which nodes the scheduler extender refuses
//	subject, group           the pods that need a place, grouped by their requirements
//	fit, shape               whether a node could run a pod; the nodes that the pool can launch
//	terms, counter, topology the rules of pods about other pods, and pods counted by domain
//	joining, place, rules    the nodes of one packing, and what affinity and spread allow there
//	batch, leaving, packer   the search: groups of pods, pods that leave their nodes, and where they go
//	result, gang, pack       how many new nodes pods need
//	simulator                    whether the pods of removed nodes fit elsewhere
//
// Pods are placed as the scheduler does, those of one group together: first the groups that the
// fewest offers could run, then those with rules about each other, then the largest. Each pod goes
// to the first place that takes it: an existing node that has room after all (the scheduler has not
// come to it yet, or has another reason), a node that is being launched, a new node that others
// need as well, and at last one more node. Respected are requests of all resources, pod slots, host
// ports, taints, node selectors and required node affinity, where volumes are or may be
// provisioned, required affinity and anti-affinity between pods in both directions, and spread
// constraints with DoNotSchedule, over any topology whose label the nodes have.
//
// It is approximate in these points. In doubt no node is launched that might not help:
//   - a namespace selector by label means all namespaces in an anti-affinity and none in an affinity;
//   - pods are placed group by group, never moved, never preempted;
//   - an unclaimed volume is not used up by the pod that is placed where it is;
//   - pods that claim devices (dynamic resource allocation) fit nowhere: which nodes have devices is unknown;
//   - a new node has only the labels and taints of its offer and of the template, and its own
//     name. Whether it is Spot is decided later, so a pod that selects a market by label is helped
//     only if the template has that label.
//
// A pod for which there is room gets no node, however long it waits. The scheduler retries every
// pod within five minutes, so a pod that waits longer is refused for a reason that is unknown here.
// A node for it would be a guess: it helps if the reason is the node (all its volume slots are
// used), but not if it is the pod (a volume or device that another pod has, a rule of another
// scheduler) or the scheduler (while it is down all pods wait). Nor would one try be the last: a
// node that has not helped is empty and removed as idle, and then the same reason leads to another.
// Such pods are counted (Result.Room) and reported.
//
// A Ready node does not always take pods: an agent may have to remove a startup taint first, or a
// device plugin to register the resources that pods request. During its time to join such a node
// counts as being launched, and afterwards as it is.
//
// One reason is known: the scheduler extender refuses a pod all existing nodes because of their
// predicted load. Such a pod finds no room on a node that runs pods and had joined when the pod
// became unschedulable. It finds room on nodes that joined later or are being launched, and on an
// empty node, which the extender never refuses. So refused pods get the nodes that they would need
// if every node of that moment were full, but only once: if the new nodes are refused as well, they
// have room as far as is known here, as above, and no further node follows. The extender admits
// such pods after some minutes.
package scheduling

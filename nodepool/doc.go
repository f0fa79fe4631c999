// Package nodepool runs pools of workers. Each tick observes the cloud and the cluster, decides (package plan), and goes
// on with what the journal (package state) has open. Ticks never wait; what takes longer is taken up again by the next
// one, of whichever process. So a process can be killed at any line: what it leaves is in the journal, on the instances as
// tags, and on the nodes as marks.
//
// # Lease
//
// Every process observes and decides, and so has its forecasts at hand; only the holder of the lease acts. The lease is in
// the journal: each write of the record renews it. Another process takes it when it has seen the record unchanged for a
// minute, by its own clock, and the holder stops acting well before that. After any error of a write the tick ends, and the
// next one reads the journal.
//
// # Scale-up
//
// The slots are written down, each with its parameters and its token, then launched one by one, and each id is written
// down as well. An error that leaves open whether an instance was launched has the same slot tried again, with the same token.
// A definitive one fails the slot; its placement cools and another slot takes its place. A slot ends with its Node Ready,
// or with its time to join over: then the instance is tagged, kept for a while, and terminated unless it joins after all. The
// action ends when no slot is open. If nothing joined, launches back off.
//
// # Scale-down
//
// Targets go several at once: tainted, looked at again for what speaks against it, cordoned, evicted, found empty,
// terminated, and the Node deleted; each state is written down before the next begins. A target that cannot be emptied takes
// pods again and is left alone for a while. When workers are desired after all, everything that is not drained yet is given
// back. While the cloud or the cluster are not known, or too many workers are unready, nothing goes on.
//
// # Deletion
//
// A pool that is being deleted launches nothing any more, and gives up an open scale-up. It removes all of its nodes by the
// workflow of every scale-down: all are tainted first, so that pods do not move from one to the next, then they go several at
// once. Whether pods have other homes is not asked, as somebody has said that the pool goes; budgets and what keeps a node are. Instances
// without a Node are condemned at once. When nothing has been seen of the pool for the grace, its journal is emptied and its
// object let go. While the cloud, the cluster or the journal are not known it is not, nor in a dry run while instances are left.
//
// # Several pools, several clusters
//
// Each pool looks at all pods that no node takes, and launches what they need if its nodes could run them. For
// pods that several pools could run the one with the largest weight launches, as long as it can: see [Claims]. Every process
// looks with every pool, so each knows what the others claim. To keep pools apart there are taints that only some pods
// tolerate, and labels in the templates that pods select. [LabelPool] is not such a label: a node gets it when it has
// joined, and none is launched for a pod that selects it, unless the template says it as well.
//
// Clusters may share an account, a region and a table: the UID of the namespace kube-system is on every instance, and in
// every item of a table. An instance of another cluster is neither listed nor touched, and an item of one is refused.
//
// # Workers that do not work
//
// A worker whose Node was Ready and has not been so for longer than a join may take does not count any more, so that another
// takes its place: three such at most, and none while so many are unready that what is seen is not to be trusted. It is
// told and let be, as its pods may run; it counts again when it is Ready. Launches that do not join have their zone and type
// come last for a while. If join.keepFailed has as many instances kept as the pool may have workers, nothing is launched.
//
// # Interruptions
//
// What the cloud takes back is written down before its message is done with. It is replaced at once, in an open scale-up or
// by one that waits for nothing, and drained beside any other action; in the last moments pods are deleted instead of
// evicted. An instance that still has pods is left to the cloud: nothing here ever terminates one.
//
// # What is tidied up
//
// Instances that an action launched, and that have neither a node nor an action any more, are condemned in one tick and
// terminated in a later one; instances that nobody here has launched are let be. A Node that carries the label of the pool
// ([LabelPool], which every worker's Node gets) is deleted once its instance has gone and it is not Ready. A mark of an action
// that is over is taken off.
package nodepool

// Package nodepool runs pools of workers. A cycle never waits; the next one, of whichever process, continues what takes longer.
// So a process can be killed at any line: what it leaves is in the journal, on the instances as tags, and on the nodes as marks.
//
// # Phases
//
// A cycle has five phases. Each is a function of what the phases before it return, so that its signature says what it may touch.
//
//	observe    the cloud, the journal, the cluster, messages  -> observation  (observe.go, observation.go, instances.go)
//	forecast   observation -> demand and predicted load       -> forecast     (forecast.go; packages scheduling and signal)
//	plan       observation, forecast -> Snapshot              -> Decision     (package plan, a pure function)
//	act        Decision -> journal, cloud and cluster                         (commit.go, act.go and the workflows below)
//	report     all of it -> CycleReport                                       (package report)
//
// All decisions are made by the plan: launches and where, removals and of whom, what takes the place of a failed launch or of an
// interrupted instance, and what is tidied up. The act phase writes a decision down before it does anything of it. Right before it
// destroys something it looks again, by the same rules, whether that still holds.
//
// Every process observes, forecasts and plans, and so has its forecasts at hand; only the holder of the lease acts.
//
// # Lease
//
// The lease is in the journal: each write of the record renews it. The holder writes every three seconds, whatever its
// cycles do, by storing once more what is stored. Another process takes the lease when it has seen the record
// unchanged for twelve seconds, by its own clock, and the holder stops acting four seconds before that. Whatever the
// clocks do, a write that follows another process's write fails. After any error of a write the cycle ends, and the
// next one reads the journal.
//
// # Side by side
//
// Removals, launches and small acts run as tasks: see [lockstep]. One goroutine changes the record. When all tasks
// have come to a call or a write, one write is made for all, and then the calls are made at the same time.
//
// # Scale-up
//
// The slots are written down, each with its parameters and its token. Slots with the same parameters share a token,
// and one call launches them, several calls at the same time. The tags of all instances of a call are the same, so an
// instance takes any planned slot that has its token, and its id is written down with the slot. After an error that
// leaves open whether instances were launched, the same call is made again with the same token and count. Where prices
// decide, a slot names further types, and the cloud launches any of these: the type of the instance replaces that of
// the slot.
//
// A definitive error fails the slots of a call, and so does an answer with fewer instances. What was refused cools, at
// the scope of the refusal: a type in a zone and market, the types of a quota, a subnet, a zone, or everything.
// Planned slots whose placement cools are not requested any more. The next cycle plans failed slots again in their
// place. A slot ends with its Node Ready, or when its time to join is over: then the instance is tagged, kept for a
// while, and terminated unless it joins after all. The action ends when no slot is open. If nothing joined, launches
// back off.
//
// # Scale-down
//
// Targets go several at once. A node is tainted, checked again for what blocks its removal, cordoned, and its pods are evicted; it is
// found empty, and its instance is terminated. Each state is written down before the next begins. A target that
// cannot be emptied takes pods again and is left alone for a while. When workers are desired after all, everything that is not
// drained yet is given back. While the cloud or the cluster are not known, or too many workers are unready, nothing goes on.
//
// # Identity and life
//
// An instance has one identity, its id. A Node is its Node if it has its provider id; addresses and host names make no match,
// but where they contradict the provider id, or several Nodes have it, nothing of the instance is destroyed (identity.go).
//
// An instance starts, runs, leaves, and is gone. It is gone when the cloud, asked by its id, says that it is terminated; a list
// that lacks it and an accepted termination prove nothing. Removals end with the termination, and what remains of them are
// the endings in the journal: each deletes a Node once its instance is gone (endings.go), so that no pod runs twice, and no
// other work waits for an instance that hangs while it shuts down.
//
// # Roll-out
//
// What replaces outdated workers is launched by a scale-up, and they are removed by a scale-down, both of reason Outdated. The journal
// has how many workers there were before the first was launched, so that whoever continues knows how many are there only in place of
// others. Neither begins the cooldown of scale-ups.
//
// # Deletion
//
// A pool that is being deleted launches nothing any more, and gives up an open scale-up. It removes all of its nodes by the
// workflow of every scale-down: all are tainted first, so that pods do not move from one to the next, then they go several at
// once. Nobody asks whether pods have other homes, as somebody has deleted the pool; PodDisruptionBudgets and whatever keeps a node
// still hold. Instances without a Node are terminated as soon as that is certain. When nothing of the pool has been seen for the grace period, its journal
// is emptied and its object let go; not while the cloud, the cluster or the journal are unknown, nor in a dry run while instances
// are left.
//
// # Several pools, several clusters
//
// Each pool looks at all pods that no node takes, and launches what they need if its nodes could run them. For
// pods that several pools could run, the one with the largest weight launches, as long as it can: see [Claims]. Every process
// looks with every pool, so each knows what the others claim. To keep pools apart, use taints that only some pods
// tolerate, and labels in the templates that pods select, or [LabelPool]. A node gets these labels when it joins.
//
// Clusters may share an account, a region and a table: the UID of the namespace kube-system is on every instance, and in
// every item of a table. An instance of another cluster is neither listed nor touched, and an item of one is rejected.
//
// # Workers that do not work
//
// A worker whose Node was Ready and has not been so for longer than a join may take does not count any more, so that another
// takes its place: three such at most, and none while so many are unready that what is seen cannot be trusted. It is
// reported; it counts again when it is Ready. After launches that do not join, their zone and
// type come last for a while. If join.keepFailed has kept as many instances as the pool may have workers, nothing is launched.
//
// # Repairs
//
// A worker whose Node has had a bad condition for as long as the pool says is written down as a repair, and drained and terminated beside any
// action. For the time of a drain its pods are evicted by their budgets, and then deleted. Without a kubelet nobody tells when they
// have ended: minutes later the instance is terminated all the same, and the Node deleted, after which their controllers make others.
// No pod is ever taken from the API while it might run. A repair waits while what is seen cannot be trusted. Once it has begun to
// evict it goes on, even if the Node is healthy again.
//
// For how long a condition has held is counted by this process alone, since it first saw it with this time of transition: a clock
// that is wrong, or a process that was not there, makes it no older than it is.
//
// # Interruptions
//
// An interruption is written down before its message is deleted. The instance is replaced at once, in an open scale-up or
// by one that waits for nothing, and drained beside any other action; in the last moments pods are deleted instead of
// evicted. An instance that still has pods is left to the cloud: nothing here ever terminates one.
//
// # Upkeep
//
// Instances that an action launched, and that have neither a node nor an action any more, are noted as pending termination in one cycle
// and terminated in a later one; instances that nobody here has launched are left alone. A Node that carries the label of the pool
// ([LabelPool], which every worker's Node gets) is deleted once its instance is gone and it is not Ready. A mark of an action
// that is over is removed.
package nodepool

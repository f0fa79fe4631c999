// Package nodepool runs pools of workers. A [Pool] cycles: what takes longer than one cycle is
// continued by the next one, in this process or in another. A process can be killed at any line:
// its state is in the journal, in the tags of the instances, and in the marks on the nodes.
//
// # Phases
//
// A cycle has five phases. Each is a function of the results of the phases before it, so its signature says what it may
// touch.
//
//	observe    the cloud, the journal, the cluster, messages  -> observe.Observation
//	forecast   Observation                                    -> forecast.Forecast
//	plan       Observation, Forecast                          -> plan.Decision, a pure function of a plan.Snapshot
//	act        Decision                                       -> journal, cloud and cluster
//	report     all of it                                      -> CycleReport, for package report
//
// The plan makes all decisions: launches and where, removals and of which nodes, what takes the
// place of a failed launch or of an interrupted instance, and what is tidied up. The act phase
// writes a decision into the journal before it does anything of it.
//
// Every process observes, forecasts and plans, so it has its forecasts at hand when it takes over.
// Only the holder of the lease acts: see package journal.
//
// # Deletion
//
// A pool that is being deleted launches nothing, and gives up an open scale-up. It removes all of
// its nodes by an ordinary scale-down: all are tainted first, so that pods do not move from one to
// the next, then several are emptied at once. Whether the pods have other homes is not asked, but
// PodDisruptionBudgets and whatever else keeps a node still hold. Instances without a Node are
// terminated as soon as that is certain. When nothing of the pool has been seen for the grace
// period, its journal is emptied and its object let go; not while the cloud, the cluster or the
// journal are unknown, nor in a dry run while instances are left.
//
// # Several pools, several clusters
//
// Each pool looks at all pods that no node takes, and launches what they need if its nodes could
// run them. If several pools could run a pod, the one with the largest weight launches for it, as
// long as it can: see [forecast.Claims]. Every process runs every pool, so each knows what the
// others claim. To keep pools apart, use taints that only some pods tolerate, and labels in the
// templates that pods select, or [cluster.LabelPool]. A node gets these labels when it joins.
//
// Clusters may share an account, a region and a table: the UID of the namespace kube-system is on every instance and in
// every item of a table. An instance of another cluster is neither listed nor touched, and an item of one is rejected.
package nodepool

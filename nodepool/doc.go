// Package nodepool runs pools of workers. A [Pool] runs cycles: work that takes longer than one
// cycle is continued by the next one, in this process or in another. A process can be killed at any
// line: its state is in the journal, in the tags of the instances, and in the marks on the nodes.
//
// # Phases
//
// A cycle has five phases. Each is a function of the results of the phases before it, so its
// signature shows what it may use.
//
//	observe    the cloud, the journal, the cluster, messages  -> observe.Observation
//	forecast   Observation                                    -> forecast.Forecast
//	plan       Observation, Forecast                          -> plan.Decision, a pure function of a plan.Snapshot
//	act        Decision                                       -> journal, cloud and cluster
//	report     all of them                                -> CycleReport, for package report
//
// The plan makes all decisions: launches and their placements, removals and their nodes,
// substitutes for failed launches and interrupted instances, and what is tidied. The act phase
// records a decision in the journal before it acts.
//
// Every process observes, forecasts and plans, so it has forecasts when it takes over. Only the
// holder of the lease acts: see package journal.
//
// # Deletion
//
// A pool that is being deleted launches nothing, and gives up an open scale-up. It removes all of
// its nodes by an ordinary scale-down: all are tainted first, so that pods do not move from one to
// the next, and then several are drained at once. The places of their pods are not checked, but
// PodDisruptionBudgets and everything else that blocks a drain still apply. Instances without a
// Node are terminated as soon as that is certain. When nothing of the pool has been seen for the
// grace period, its journal is emptied and its finalizer removed. That does not happen while the
// cloud, the cluster or the journal is unknown, nor in a dry run while instances are left.
//
// # Several pools, several clusters
//
// Each pool considers all pods that fit on no node, and launches what they need if its nodes could
// run them. If several pools could run a pod, the one with the largest weight launches for it, as
// long as it can: see [forecast.Claims]. Every process runs every pool, so each knows the claims of
// the others. To keep pools apart, use taints that only some pods tolerate, and labels in the
// templates that pods select, or [cluster.LabelPool]. A node gets these labels when it joins.
//
// Clusters may share an account, a region and a table: the UID of the namespace kube-system is on every instance and in
// every item of a table. An instance of another cluster is neither listed nor touched, and an item of one is rejected.
package nodepool

// Package extender is a kube-scheduler extender. It filters and scores nodes by their predicted
// use, not by requests alone. docs/extender.md describes it for users.
//
// # Filter
//
// Nodes without data pass.
//   - Pods of DaemonSets and system-critical pods pass everywhere.
//   - A node that a WorkerPool has committed to remove is filtered.
//   - A node is filtered if its memory at the horizon would exceed a share of its allocatable memory: the upper
//     estimate, its assumed pods and this pod. CPU is checked the same way, by option. The nominated node passes, and
//     so does a node on which the pod would be alone.
//
// If that leaves none of the named nodes, the first of these applies:
//   - A pod that may preempt others passes: otherwise it would preempt them on full nodes.
//   - If other nodes have room, it is filtered with [v1alpha1.FilteredElsewhere], and the scheduler tries those; at
//     most three times, and only for requests of a hundred names, as smaller ones name every node.
//   - If a pool can launch a node for it, it is filtered with [v1alpha1.FilteredForLoad], for Rules.MaxWait from the
//     first time.
//   - It passes: the limits are ignored.
//
// # Prioritize
//
// With u the larger share of CPU and memory that a node would use at the horizon, with its assumed
// pods and this pod, and T the target,
//
//	pack(u) = T + (1-T)*u/T        for u <= T
//	          T*(1-u)/(1-T)        for T < u <= 1
//	          0                    above
//
// and the score is round(10*pack(u)*c*w), less one for all but one of the best. c is 0 for a node
// that is about to be removed. w rises to 1 while a node warms up, and is 1 for pods older than the
// node. Without a fresh prediction u comes from requests.
//
// # Answers
//
// Requests are answered from a snapshot, made every [Period], and from the assumed pods. Only a pod
// that the watch does not have yet is read. Nothing is written: a node that passes the filter is no
// commitment of the scheduler. Without a snapshot of the last ten seconds all nodes pass but those
// known to be removed, and all scores are equal. Anyone who can connect may ask, unless client
// certificates are required. So the memory of a request is bounded, and a request assumes only pods
// that the API has as pending.
//
// # Files
//
//   - extender.go: [Extender], which makes snapshots; server.go: TLS; handler.go: HTTP; protocol.go: JSON.
//   - cluster.go: the cache of nodes and pods (record.go, terms.go); snapshot.go: the snapshot.
//   - evaluation.go: the input of verdicts, and verdicts; filter.go and prioritize.go: how they are reached.
//   - pod.go: the pod of a request; estimate.go: its expected use; waiting.go: pods that fit no node.
//   - assumed.go: pods that samples do not include yet; arrival.go: pods that the watch does not have yet.
//   - decisions.go: the cache of decisions; explain.go: its JSON; metrics.go: metrics.
package extender

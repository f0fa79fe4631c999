// Package extender answers kube-scheduler as a scheduler extender: which nodes a pod must not go to (filter), and which
// of the others it should (prioritize), by what nodes are predicted to use rather than by what was requested of them.
//
// # Filter
//
// It lets pass whatever it knows nothing of:
//   - pods of DaemonSets and system-critical pods pass everywhere;
//   - a node that a pool of workers has committed to remove is refused;
//   - a node is refused whose memory at the horizon (the upper estimate, with the ledger and this pod) would pass a share
//     of what it can allocate, and by option its CPU; not so one on which the pod would be alone, as it would be refused
//     everywhere, nor the one that the scheduler has promised to the pod and may have evicted others from.
//
// If that leaves none of the nodes asked about, the first of these holds:
//   - a pod that may evict others, as some that is bound has a lower priority, passes, or it would do that on nodes that are
//     full while these are not;
//   - if other nodes of the cluster that the pod could run on have room, it is refused with [v1alpha1.RefusedElsewhere], as the
//     scheduler will ask about these when it tries again; three times at most. A scheduler asks about a sample only if it has
//     found a hundred nodes for the pod, so that this is looked at with so many names alone;
//   - if a pool of workers can grow by nodes that the pod could run on, it is refused with [v1alpha1.RefusedForLoad], for
//     minutes at most from when it first was: see patience.go;
//   - the pod passes, and the limits are not heard.
//
// A refused pod is tried again when anything changes of a pod or a node of the cluster, and after five to six minutes if
// nothing does. The scheduler is not told when predictions fall.
//
// # Prioritize
//
// It packs: with u the larger share of CPU and memory that a node would use at the horizon, with the ledger and this pod,
// and T the share to be packed up to,
//
//	pack(u) = T + (1-T)*u/T        for u <= T
//	          T*(1-u)/(1-T)        for T < u <= 1
//	          0                    above
//
// and the score is round(10*pack(u)*c*w), less one for nodes that by rounding are as good as the best: one node is the best
// alone, or the scheduler would choose among many as good, and the ledger could not tell which. c is 0 for a node that is about to be removed, so that it empties by itself;
// w rises to 1 while a node warms up, and is 1 for pods that were there before the node was. Of a node without a fresh
// prediction u is what pods request of it.
//
// Between two readings of what nodes use, the ledger counts the pods that were bound since: see ledger.go. It is what
// keeps a burst of pods from all going to the node that was the best one when it was read.
//
// # Answers
//
// Answers are given from a view that is made anew twice a second, and from the ledger; never by a call out. Nothing is
// written: that a node passes the filter is no commitment of the scheduler's. Without a view that is younger than ten
// seconds all nodes pass but those known to be removed, and all are scored alike. Views are made until the API has been out
// of touch for ten seconds, so that this begins some twenty after it fails.
//
// Anyone who can connect may ask, unless certificates of clients are asked for. So what is held for a request, or because of
// it, is bounded; and what is asked moves the ledger only for pods that the API has as pending, within what nodes have.
//
// A scheduler is answered at https://HOST:PORT/scheduler (its urlPrefix) by the verbs filter and prioritize, with
// nodeCacheCapable: true. Verdicts are made by pure functions of a question; from them come the answer (protocol.go), the
// metrics (telemetry.go) and what is told of a pod (explain.go).
//
// # What is where
//
//   - [Extender] has a door (handler.go), which answers; a cluster, which mirrors nodes and pods; a ledger; and the view
//     that answers are given from, which look makes of these.
//   - A request is read at a desk (handler.go), decoded to asked (decode.go) and put as a question about a subject, the pod
//     (verdict.go). Each node gets a verdict, with the reason that was found and the gap in what was known (verdict.go), and
//     the pod a room: what became of it where no node had any (filter.go).
//   - A node (view.go) is one of a view. Its slot is shared with the others and has tallies of what changes between them:
//     what is requested, what is on the ledger, and guests, the pods that do not belong to the node itself.
//   - A home (cluster.go) is what pods are bound to: a name of a Node, which may be there or not, and its slot. A record
//     (pods.go) is what is kept of a pod, terms what of a Node decides which pods can run on it.
//   - An entry (ledger.go) is what a bound pod counts, a guess what one counts that was scored.
//   - The past of a pod (patience.go) is how long it waits and how often it was sent elsewhere; waiting has that of all.
//   - The trail (trail.go) has steps: findings, which are the verdicts on one request, to be explained. A brief is what it
//     keeps of a subject; told is what anything of it is for those who read JSON (explain.go).
package extender

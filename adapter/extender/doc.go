// Package extender answers kube-scheduler as a scheduler extender: which nodes a pod must not go to (filter), and which
// of the others it should (prioritize), by what nodes are predicted to use rather than by what was requested of them.
//
// Filter, which lets pass whatever it knows nothing of:
//   - pods of DaemonSets and system-critical pods pass everywhere;
//   - a node that a pool of workers has committed to remove is refused;
//   - a node is refused whose memory at the horizon (the upper estimate, with the ledger and this pod) would pass a share
//     of what it can allocate, and by option its CPU;
//   - if that leaves none, it is not heard, unless a pool can still grow: then the pod waits for a node, for minutes at most.
//
// Prioritize packs: with u the larger share of CPU and memory that a node would use at the horizon, with the ledger and
// this pod, and T the share to be packed up to,
//
//	pack(u) = T + (1-T)*u/T        for u <= T
//	          T*(1-u)/(1-T)        for T < u <= 1
//	          0                    above
//
// and the score is round(10*pack(u)*c*w). c is 0 for a node that is about to be removed, so that it empties by itself;
// w rises to 1 while a node warms up, and is 1 for pods that were there before the node was.
//
// Between two readings of what nodes use, the ledger counts the pods that were bound since: see ledger.go. It is what
// keeps a burst of pods from all going to the node that was the best one when it was read.
//
// Answers are given from a view that is made anew twice a second, and from the ledger; never by a call out. Nothing is
// written: that a node passes the filter is no commitment of the scheduler's.
package extender

// Package workload gives pods that have no containers real HTTP endpoints: for each running pod it
// listens on the pod's own address, which must be a loopback address, and closes what it opened
// when the pod goes away.
//
// A pod is one event loop: requests are served one after another in the order in which they arrive,
// each holding the loop for a service time. Serving is waiting and costs no CPU, so that hundreds
// of pods fit on a laptop; what a pod says of itself (utilization, busy seconds, requests) is what
// a real event loop of that service time would say.
package workload

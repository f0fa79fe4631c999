// Package extenderbench measures the scheduler extender: the real foresail process on a real etcd
// and API server that hold 5,000 nodes and 150,000 pods, called by kube-scheduler's own client and
// by real kube-schedulers.
//
// Nodes and pods are written straight into etcd, and no kubelet plays: nodes are Ready because
// their objects say so, and pods that are bound stay as they are. metrics.k8s.io is served by the
// benchmarks. The memory and the processor time that are told are those of the foresail process
// alone.
//
// The benchmarks print what benchstat reads; `make bench-extender` runs them. Nothing that is
// measured is asserted.
package extenderbench

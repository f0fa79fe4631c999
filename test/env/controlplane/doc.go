// Package controlplane runs a real Kubernetes control plane on this machine, without containers:
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler as they are published, and kwok
// in the place of the kubelets.
//
// [Build] compiles the five programs from the Go module proxy once and keeps them in the
// repository's .cache folder. [Start] runs them on loopback ports of their own, so that several
// clusters, of several processes, run side by side.
//
// Everything but the nodes is real: the HPA, Deployment, garbage-collection and namespace
// controllers, RBAC, admission, the scheduler and the API aggregation layer. A pod is an API object
// with an address of its own out of 127.0.0.0/8 ([Cluster.PodCIDR]), so a program on this machine
// can listen where the pod says it is. A pod goes through what a real one goes through: scheduled,
// then Running with an address but not Ready, then Ready once its delay is over
// ([Options.ReadyDelay], [ReadyDelayAnnotation]). No address is given twice in the life of a
// cluster.
//
// The addresses need Linux, where all of 127.0.0.0/8 is local. Kubernetes admits no loopback
// address as an endpoint, so a Service that selects such pods stays without endpoints. Tests of
// Services set [Options.PodCIDR] to another network, and then no program can listen at the pods'
// addresses.
package controlplane

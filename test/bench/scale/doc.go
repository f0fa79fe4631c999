// Package scale measures a whole Foresail: the real process, with the permissions of the manifests,
// on a real etcd and API server that hold as many pods as a large cluster. Its benchmarks print
// what benchstat reads; `make bench` and `make bench-scale` run them.
//
// Nothing but etcd and the API server runs beside Foresail. What controllers and kubelets would
// bring about (Deployments whose pods are Ready) is written straight into etcd, encoded as the API
// server does, which takes seconds where requests would take minutes. The processor time and the
// memory are those of the Foresail process alone.
package scale

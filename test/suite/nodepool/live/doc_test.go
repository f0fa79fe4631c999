// Package live runs node pools as they are run in earnest: the foresail process with the
// permissions of the manifests, a real scheduler, real controllers with their PodDisruptionBudgets,
// and kwok in the place of kubelets. Clouds are simulated, or moto's EC2 and SQS. Things go wrong
// in them, and docs/nodepool.md says what comes of it.
//
// All pools share one control plane and one process. What keeps them apart is a label: that of a
// pool's nodes, which all of its pods ask for.
package live

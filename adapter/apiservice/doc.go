// Package apiservice makes the cluster's API server send requests for external metrics to Foresail,
// and for custom metrics if that is wanted, and check who answers.
//
// Only one server of a cluster can own an API, by an APIService such as
// v1beta1.external.metrics.k8s.io. [Registrar] creates it where there is none, and leaves that of
// another server alone. It signs Foresail's serving certificate with an authority of its own, which
// the replicas share through a Secret, and writes the authority into the caBundle of each
// APIService.
//
// No read fails while the authority is replaced. At two thirds of its life a replica writes another
// one to the Secret. The caBundle keeps each authority until it expires, and a running replica
// serves a certificate of the new one only after the API servers have had time to learn it
// ([authority.overlap]). A replica that starts takes the new one at once, before it is ready.
package apiservice

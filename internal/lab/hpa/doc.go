// Package hpa does what the HorizontalPodAutoscaler controller of Kubernetes 1.36 makes of metrics: the replicas that each
// metric asks for, the largest of them, and how behaviour, stabilisation and limits hold it back. It has a clock of
// its caller's and reads nothing itself. A test of the control plane's components holds it against the controller.
//
// Values of metrics are milli-units, times are milliseconds. Scaling to zero is not covered: Min is at least 1.
package hpa

// Package scaler has the scalers that the lab compares, by name: what clusters do today (hpa-cpu, keda), the paper's
// scaler, Foresail in each of the ways that its forecast can reach the replicas, and two bounds that know what no scaler can
// know (clairvoyant, instant).
//
// What is Foresail's is Foresail's own code: the pipeline, and the external metrics with their rounding.
package scaler

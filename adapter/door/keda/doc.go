// Package keda serves forecasts to KEDA as an external scaler over gRPC: it is the door of
// ScaledObjects, for clusters whose external.metrics.k8s.io is KEDA's. docs/keda.md describes it
// for users, externalscaler.proto the protocol.
//
// # Triggers
//
// A trigger is one metric of one PredictedMetric in the namespace of the ScaledObject. Its metadata may have
//
//	predictedMetric  the name of the PredictedMetric; the default is that of the ScaledObject
//	metric           predicted_load_total (the default) or predicted_replicas
//	activation       the value above which the trigger is active; the default is 0
//
// and what KEDA itself reads. Any other key is refused, as a misspelt one would be the default
// unnoticed. So is predicted_load: it needs a target of type Value, and the default of a trigger is
// AverageValue, which is not known here.
//
// # Answers
//
// GetMetricSpec returns one metric, named as package serving names it, with its target. It needs
// the PredictedMetric and no sample, because KEDA drops a metric from the HPA whose target it
// cannot get, and while that lasts answers none of the ScaledObject's external metrics. GetMetrics
// returns the value of external.metrics.k8s.io to the digit, or the error with the same sentence.
// The HPA then keeps its replicas, and KEDA counts towards the fallback of the ScaledObject.
// Integers stay 0: a KEDA before 2.17, which reads no others, makes an HPA with a target of 0 that
// the API server refuses.
//
// # Activity
//
// IsActive is whether the value is above activation. It matters where KEDA scales between zero and
// one, with minReplicaCount 0 or idleReplicaCount. A target without ready pods has no load that
// could be read, so there is no value and no activity either: GetMetrics and IsActive answer
// Unavailable, and StreamIsActive sends nothing. Inactive would be a guess, and active would never
// let a target sleep. A PredictedMetric whose source has the load of the target as a whole (scope
// Target) needs no pods: it wakes a target at zero, and lets it sleep. With any other,
// minReplicaCount 0 means:
//   - A target whose load falls to activation or below goes to zero after cooldownPeriod.
//   - At zero this trigger does not activate the target. Another trigger of the ScaledObject has to, one that sees
//     demand without pods, such as a queue. Without fallback KEDA keeps the target at zero until then, and reports the
//     error. With fallback, KEDA from 2.19 on treats the failing trigger as active once failureThreshold is passed: it
//     scales the target up, which then scales to zero again.
//   - An error at one pod or more never takes the last one away: KEDA scales to zero only while no trigger fails,
//     unless fallback.replicas is 0.
//
// # Streams
//
// Triggers of type external-push hold two streams open. Each sends the present state at once, as
// far as it is known, and then every change. A PredictedMetric that does not exist or has no
// forecast is no error of a stream: KEDA would wait up to a minute before it asks again, and what
// it misses it also learns from calls. Streams end without an error after some minutes, before
// their connection is closed, and at a shutdown; KEDA opens them again after two seconds.
//
// # Files
//
//   - scaler.go: [Scaler], the answers; trigger.go: the metadata; stream.go: the streams.
//   - server.go: [Server], the listener; options.go: its flags and files; telemetry.go: metrics.
package keda

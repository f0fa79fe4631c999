// Package externalmetrics serves predictions to HorizontalPodAutoscalers through external.metrics.k8s.io.
//
// Three metrics exist. Each PredictedMetric has one item of each, in its own namespace, labelled with its name
// (predictedmetric) and with the kind and the name of its scale target (kind, target). τ is the threshold, N(A_ω, τ)
// the number of instances that the forecast asks for, as a real number, and R the target's ready pods:
//
//	predicted_load_total  τ·N(A_ω, τ)    for an HPA target of type AverageValue and value τ
//	predicted_load        τ·N(A_ω, τ)/R  for an HPA target of type Value and value τ
//	predicted_replicas    N*             for an HPA target of type AverageValue, value 1 and tolerance 0
//
// N* is the largest that any PredictedMetric of the target asks for; see snapshot.Joint.
//
// # Values
//
// Served values are whole milli-units, and the HPA divides them by its target in whole milli-units. They are rounded
// so that its result is ⌈N(A_ω, τ)⌉, as the pipeline rounds it, whatever the rounding: N(A_ω, τ) is rounded up to three
// significant digits (at the finest to thousandths and at the coarsest to whole instances), which keeps the HPA's
// status from being rewritten for jitter, and is multiplied by τ after that. A threshold finer than a milli-unit counts
// as the next whole one, as it does in the HPA's target.
//
// What an HPA cannot know is what lies below a milli-unit. predicted_load_total has no such loss. predicted_load has:
// its result is exact while R is less than τ in milli-units, and above that up to ⌈R/τ in milli-units⌉ instances too
// high, never too low. A metric whose threshold is below 0.1 should therefore be scaled up (percent instead of shares,
// milliseconds instead of seconds) or be read as predicted_load_total.
//
// # Errors
//
// An HPA never asks how old a value is, so the age is checked here, at each read and by this package's own clock. What is
// not known is an error and never a number or an empty list: 404 where a metric or a PredictedMetric does not exist,
// 400 where a selector matches several and their sum means nothing, 503 where there is no forecast at the moment.
// The HPA copies the message into its conditions and events, so it stays the same while the cause does: ages in it are
// coarse. No answer carries Retry-After, for which the HPA's client would wait, and with it other HPAs.
package externalmetrics

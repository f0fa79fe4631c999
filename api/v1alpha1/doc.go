// Package v1alpha1 holds the kinds of the API group foresail.dev.
//
// Numbers that are not counts are quantities (700m is 0.7), spans are Go durations (90s). An optional field is a
// pointer where its zero value means something else than its absence; the API server fills in the defaults, and so
// does [PredictedMetricSpec.Default] where there is no API server.
//
// The pattern on quantities bounds their exponent: to compare or decode 1e999999999 takes gigabytes.
//
// +kubebuilder:object:generate=true
// +groupName=foresail.dev
package v1alpha1

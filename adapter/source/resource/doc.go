// Package resource is the source that reads the usage of pods from metrics.k8s.io, which metrics-server serves.
//
// It is for those who have nothing else: a value is the mean over a window of 15 s or more, and reaches the API at its
// end, so that a forecast learns of a change later than from any other source, and of its shape little. One list of a namespace
// serves all PredictedMetrics that read it at the same interval.
package resource

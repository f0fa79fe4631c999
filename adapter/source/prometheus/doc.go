// Package prometheus is the source that reads samples from Prometheus servers, and whatever else speaks their HTTP API.
//
// It asks for raw range vectors, so that samples keep the times at which they were scraped. PredictedMetrics that ask
// the same of the same server at the same interval form a group, which asks once for all; each takes from the answer
// what is of its own namespace and of the pods of its own fleet. The first answer that a PredictedMetric takes reaches
// back over its window, so that a restart forecasts at once; later ones bring what is new.
//
// The server's clock decides what now is. A server whose clock is ahead gives samples from the future, and it is the
// sink that refuses them.
package prometheus

// Package pods is the source that reads every ready pod's own metrics endpoint, once an interval.
//
// PredictedMetrics that read the same endpoint of a pod at the same interval share its scrapes. Each endpoint is read at
// a phase of its own within the interval, so that the load is spread, and at most once at a time: a scrape that is still
// running when the next is due takes its place. Endpoints that are slow or failing are read apart from the others, by
// slots of their own, and those that keep failing less often, so that they hold up none but each other.
package pods

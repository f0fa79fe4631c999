// Package series holds the types that the stages of the pipeline share: samples and instances, the time grid, the
// window of values that stages one and two fill, and the loads, one per tick, that stage three computes.
//
// Times are milliseconds since a fixed origin. Values are in units of the metric, loads in units of the aggregate of
// the [Model].
package series

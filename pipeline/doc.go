// Package pipeline forecasts the load of a group of instances and recommends how many of them there should be.
//
// It implements the five-stage algorithm of "Predictive scaling of Node.js workloads" (the paper; section numbers refer
// to it), each stage in a package of its own:
//
//   - align (4): interpolates the samples of each instance at the ticks of a grid
//   - impute (5): fills in values of instances that are active but were not read
//   - redistribute (6): adds the values up to one load per tick, while load moves to new instances
//   - predict (7): projects the load to the horizon
//   - decide (8, 9): computes the number of instances, and applies cooldowns
//
// Stages three to five exist twice: as the paper describes them ([Holt]), and with a line through the newest loads
// in place of Holt's method ([Adaptive], the default of the API). The other packages are:
//
//   - gate: rejects readings that cannot be a load, before they reach the pipeline
//   - line: fits a line to the newest loads, with the noise around it; used by predict and learn
//   - learn: learns how a load recurs and which margin it needs, for the adaptive method
//   - judge: measures the accuracy of forecasts, and the startup time (10)
//   - series: the types that all of them share
//
// Only this package composes the stages: it validates [Params] and passes each stage its own options.
//
// A forecast is a pure function of its [Input] and [Params]: nothing is carried from one run to the next, so
// two replicas that read the same samples serve the same number, bit for bit, and a restart that can read the window
// again loses nothing. The order of instances and samples does not matter, with one exception: if two samples of an
// instance share a timestamp, the later one in the list wins.
//
// Times are milliseconds since the Unix epoch (or any other fixed origin), as in Prometheus; spans are
// [time.Duration]. These packages import only the standard library, read no clock and draw no random numbers.
package pipeline

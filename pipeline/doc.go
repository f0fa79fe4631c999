// Package pipeline forecasts the load of a group of instances and recommends how many of them there should be.
//
// It implements the five-stage algorithm of "Predictive scaling of Node.js workloads" (the paper; section numbers refer
// to it), each stage in a package of its own:
//
//   - align (4): samples become values of the ticks of a grid
//   - impute (5): values of instances that are active and not known
//   - redistribute (6): the load of each tick, while load moves to new instances
//   - predict (7): the load at the horizon
//   - decide (8, 9): the number of instances, and cooldowns
//
// Stages three to five exist twice: as the paper has them ([Holt]), and with a line through the newest loads in place
// of Holt's method ([Adaptive]), which the API uses by default. Package judge measures the accuracy of forecasts and the
// startup time (10), package learn the recurrence of loads for the adaptive method. All share the nouns of package
// series. This package alone composes them: it validates [Params] and passes each stage its own options.
//
// A forecast is a pure function of its [Input] and [Params]: nothing is carried from one run to the next, so
// two replicas fed the same samples serve the same number, bit for bit, and a restart that can read the window
// again loses nothing. The order in which instances or samples are given does not matter, but for samples of
// one instance that share a timestamp, of which the last given wins.
//
// Times are milliseconds since the Unix epoch (or any other fixed origin), as in Prometheus; spans are
// [time.Duration]. These packages import the standard library alone, read no clock and draw no random number.
package pipeline

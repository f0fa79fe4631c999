// Package pipeline forecasts the load of a group of instances and recommends how many of them there should be.
//
// It implements the five-stage algorithm of "Predictive scaling of Node.js workloads" (the paper; section
// numbers in this package refer to it): alignment (4), imputation (5), redistribution (6), prediction (7)
// and decision (8), with the cooldowns of section 9 and the measured startup time of section 10. Stages three to five exist
// twice: as the paper has them ([Holt]), and with a line through the newest loads in place of Holt's method ([Adaptive]),
// which the API takes by default.
//
// A forecast is a pure function of its [Input] and [Params]: nothing is carried from one run to the next, so
// two replicas fed the same samples serve the same number, bit for bit, and a restart that can read the window
// again loses nothing. The order in which instances or samples are given does not matter, but for samples of
// one instance that share a timestamp, of which the last given wins.
//
// Times are milliseconds since the Unix epoch (or any other fixed origin), as in Prometheus; spans are
// [time.Duration]. The package imports the standard library alone, reads no clock and draws no random number.
package pipeline

// Package series holds the nouns that the stages of the pipeline share: samples and instances as they come in, the time
// grid, the window of values that stages one and two fill, and the load of each tick that stage three makes of them.
//
// Times are milliseconds since a fixed origin, spans of the grid are numbers of ticks. Values are in units of the
// metric, loads in units of the aggregate of the [Model].
package series

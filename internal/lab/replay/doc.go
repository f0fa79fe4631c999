// Package replay runs the pipeline over recorded events, so that anyone can audit a forecast, or
// repeat one, without a cluster.
//
// [Read] takes JSON Lines, one event a line, in any order, and [Recording.Replay] evaluates the
// runs they ask for in order of time. A run at a time now sees the samples received by then, and
// the starts, ends and target counts up to then; nothing else about it depends on which other runs
// there are, but where [Options] ask for it: cooldowns are counted from the decisions of earlier
// runs, and what these have seen is learned.
//
// Times are milliseconds, as in package pipeline.
package replay

// Package evaluation says whether Foresail was worth it: what it did for a PredictedMetric in the
// last days, as Prometheus has it, next to what others would have done with the same load, as
// internal/lab/play/backtest plays it.
//
// Data flows one way: [Read] makes a [Record] of Foresail's own metrics, [Evaluate] a [Report] of
// it. Time of which nothing is recorded is in no figure: a gap is no load of zero.
package evaluation

// Package backtest plays scalers against a load that was recorded, and says what each would have cost and how often it
// would have been late; how good the forecast was; and which settings would have done better.
//
// A trace is played in sections of some hours, each in a world of its own after a lead-in of what came before it, so that
// many can be played at once and none takes much memory. What needs many runs (the frontier, the search for settings)
// plays hours from all over the trace.
package backtest

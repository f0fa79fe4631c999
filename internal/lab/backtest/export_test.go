package backtest

import (
	"context"
	"time"

	"github.com/foresail/foresail/internal/lab"
)

// Continued is where a straight line through values goes on to.
var Continued = continued

// Sections returns the beginnings and ends of sections, and of those that a budget allows, in seconds.
func Sections(from, to int64) [][2]int64 {
	var out [][2]int64
	for _, s := range sections(from*second, to*second) {
		out = append(out, [2]int64{s.from / second, s.to / second})
	}
	return out
}

// Parts returns where the part that settings are judged on begins, and both parts, in seconds.
func Parts(o *Options) (tunedTo, judgedFrom int64) {
	tuned, judged := newPlayer(o).parts()
	return tuned[len(tuned)-1].to / second, judged[0].from / second
}

// Spread returns how long the sections are that are picked of so many of an hour each, and the first and last of them.
func Spread(of, hours int) (n, first, last int) {
	all := make([]section, of)
	for i := range all {
		all[i] = section{int64(i) * 3600 * second, int64(i+1) * 3600 * second}
	}
	picked := spread(all, time.Duration(hours)*time.Hour)
	return len(picked), int(picked[0].from / 3600 / second), int(picked[len(picked)-1].from / 3600 / second)
}

// Judge has a scaler decide each second of a world under a load, and returns how far its forecasts were off.
func Judge(s lab.Scaler, w lab.World, load lab.Load, cost float64, span lab.Span) Errors {
	o := &observer{Scaler: s, load: load, cost: cost, from: span.Lead.Milliseconds(), until: (span.Lead + span.Length).Milliseconds()}
	lab.Run(w, o, span, nil)
	return o.errors
}

// Advise searches and judges.
func Advise(ctx context.Context, o *Options) (*Advice, error) { return newPlayer(o).advise(ctx) }

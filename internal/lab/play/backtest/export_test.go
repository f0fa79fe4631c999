package backtest

import (
	"context"
	"time"

	"github.com/foresail/foresail/internal/lab"
)

// Continued is where a straight line through values goes on to.
var Continued = continued

// Sections returns the beginnings and ends of the sections of a part, in seconds.
func Sections(from, to int64) [][2]int64 {
	return inSeconds(section{from * second, to * second}.sections(longestSection))
}

// Sample returns those of the sections that stand for a part.
func Sample(from, to int64, budget time.Duration, seed uint64) [][2]int64 {
	return inSeconds(section{from * second, to * second}.sample(budget, seed))
}

func inSeconds(all []section) [][2]int64 {
	var out [][2]int64
	for _, s := range all {
		out = append(out, [2]int64{s.from / second, s.to / second})
	}
	return out
}

// Parts returns where the part ends that settings are searched on, and where that begins that they
// are judged on, in seconds.
func Parts(o *Options) (tunedTo, judgedFrom int64) {
	tuned, judged := newPlayer(o).parts()
	return tuned.to / second, judged.from / second
}

// Tried returns the variations of a setting that a search tries, by the field that they change.
func Tried(o *Options, s Setting) map[string][]Setting {
	out := map[string][]Setting{}
	for _, d := range dimensions(o, &s) {
		out[d.field] = d.of(s)
	}
	return out
}

// Judge has a scaler decide each second of a world under a load, and returns how far its forecasts were off.
func Judge(s lab.Scaler, w lab.World, load lab.Load, begins int64, cost float64, span lab.Span) Errors {
	o := &observer{Scaler: s, load: load, begins: begins, cost: cost, from: span.Lead.Milliseconds(),
		until: (span.Lead + span.Length).Milliseconds()}
	lab.Run(w, o, span, nil)
	return o.errors
}

// Advise searches and judges.
func Advise(ctx context.Context, o *Options) (*Advice, error) { return advise(ctx, newPlayer(o)) }

// Pinball is the loss of a forecast of a quantile.
func Pinball(forecast, value, quantile float64) float64 { return pinball(forecast, value, quantile) }

// Findings returns what a result comes to, in sentences.
func Findings(r *Result) []string { return findings{r}.all() }

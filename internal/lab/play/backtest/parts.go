package backtest

import (
	"context"
	"time"

	"github.com/foresail/foresail/internal/lab/score"
)

// Part is a part of a trace, in whole seconds from its beginning.
type Part struct{ From, To time.Duration }

// PlayParts plays each scaler of the options against each part of the trace, in a world of its own
// after a lead-in, and returns the mean figures over the seeds, in the order of scalers and of
// parts. Foresail has learned from all of the trace that was before a part.
func PlayParts(ctx context.Context, o *Options, parts []Part) ([][]score.Pods, error) {
	settings := make([]Setting, len(o.Scalers))
	for i, name := range o.Scalers {
		settings[i] = o.setting(name)
	}
	sections := make([]section, len(parts))
	for i, part := range parts {
		sections[i] = section{part.From.Milliseconds(), part.To.Milliseconds()}
	}
	runs, err := newPlayer(o).runs(ctx, settings, sections)
	if err != nil {
		return nil, err
	}
	out := make([][]score.Pods, len(settings))
	for i := range out {
		out[i] = make([]score.Pods, len(parts))
		for k := range parts {
			first := (i*len(parts) + k) * len(o.Seeds)
			out[i][k] = sum(runs[first : first+len(o.Seeds)]).per(len(o.Seeds)).Pods
		}
	}
	return out, nil
}

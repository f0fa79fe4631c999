package backtest

import (
	"context"
	"time"
)

// Played is how one scaler went.
type Played struct {
	Scaler string
	Figures
	Replicas []int // that the target was set to, at the beginning of each step
}

// Play plays the scalers of the options against all of their trace, one after the other, with the
// first seed. The trace is no longer than a section. An end of the context ends it with the run
// that is under way.
func Play(ctx context.Context, o *Options, step time.Duration) ([]Played, error) {
	p := newPlayer(o)
	part := p.whole()
	out := make([]Played, 0, len(o.Scalers))
	for _, name := range o.Scalers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s := o.setting(name)
		s.Metric = o.Metric // the load is not of requests that saturate pods, whoever reads it
		record, _, err := p.record(&s, part, o.Seeds[0])
		if err != nil {
			return nil, err
		}
		one := Played{Scaler: name, Figures: p.figuresOf(record, &s)}
		for i := 0; i < len(record.Seconds); i += int(step / time.Second) {
			one.Replicas = append(one.Replicas, record.Seconds[i].Target)
		}
		out = append(out, one)
	}
	return out, nil
}

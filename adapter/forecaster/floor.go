package forecaster

import (
	"time"

	"github.com/foresail/foresail/pipeline"
)

// floorSpan is how long a floor looks back, at least: the end of a connection may be noticed that late.
const floorSpan = time.Minute

// floor is the highest of the forecasts of the last one or two floorSpans. Forecasts that lack a part
// of the load are raised to it.
type floor struct {
	begun          time.Time // of the newer span
	older, present struct {
		serve   float64
		desired int
	}
}

// note takes a forecast of the whole load.
func (l *floor) note(f *pipeline.Forecast, now time.Time) {
	if now.Sub(l.begun) > floorSpan {
		l.older = l.present
		l.begun, l.present.serve, l.present.desired = now, 0, 0
	}
	l.present.serve = max(l.present.serve, f.Serve)
	l.present.desired = max(l.present.desired, f.Decision.Desired)
}

// raise raises what is served of a forecast that lacks a part of the load, and has no instances removed.
func (l *floor) raise(f *pipeline.Forecast) {
	f.Serve = max(f.Serve, l.older.serve, l.present.serve)
	desired := max(f.Target, l.older.desired, l.present.desired)
	if f.Decision.Desired >= desired {
		return
	}
	f.Decision.Desired, f.Decision.Reason, f.Decision.Action = desired, pipeline.PodsUnseen, pipeline.Hold
	if desired > f.Target {
		f.Decision.Action = pipeline.ScaleUp
	}
}

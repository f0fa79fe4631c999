package forecaster

import (
	"math"
	"time"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// floorSpan is how long a floor looks back, at least: the end of a connection may be noticed that late.
const floorSpan = time.Minute

// floor is the highest of the loads that were served in the last one or two floorSpans. Forecasts that
// lack a part of the load are raised to it.
type floor struct {
	begun         time.Time // of the newer span
	noted         time.Time // when a forecast was taken last
	older, newest float64
}

// note takes a forecast of the whole load.
func (l *floor) note(f *pipeline.Forecast, now time.Time) {
	if age := now.Sub(l.begun).Abs(); age > floorSpan {
		if age > 2*floorSpan {
			l.newest = 0 // there were no forecasts for a while
		}
		l.older, l.newest, l.begun = l.newest, 0, now
	}
	l.newest, l.noted = max(l.newest, f.ServedLoad), now
}

// roundingSlack keeps rounding errors from making one instance more.
const roundingSlack = 1e-9

// raise raises a forecast that lacks a part of the load, and prevents that it removes instances. A floor from
// before a time without forecasts of the whole load does not count: load changes.
func (l *floor) raise(f *pipeline.Forecast, p *pipeline.Params, now time.Time) {
	limit := floorSpan + p.StaleAfter
	if snapshot.TooOld(l.noted, now, limit) || snapshot.TooOld(now, l.noted, limit) { // or the clock was set back
		return
	}
	f.ServedLoad = max(f.ServedLoad, l.older, l.newest)
	needed := int(math.Ceil(f.ServedLoad/p.Threshold - roundingSlack))
	desired := max(f.Target, min(needed, p.Max))
	if f.Decision.Desired >= desired {
		return
	}
	f.Decision.Desired, f.Decision.Reason, f.Decision.Action = desired, pipeline.PodsUnseen, pipeline.Hold
	if desired > f.Target {
		f.Decision.Action = pipeline.ScaleUp
	}
}

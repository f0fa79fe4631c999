package forecaster

import (
	"math"
	"time"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// floorSpan is the minimum time that a floor looks back: the end of a connection may be noticed that late.
const floorSpan = time.Minute

// floor is the highest of the loads that were served in the last one or two floorSpans. Forecasts that
// lack a part of the load are raised to it.
type floor struct {
	begun         time.Time // of the newer span
	noted         time.Time // when a forecast was last recorded
	older, newest float64
}

// recordServed records the served load of a forecast of the whole load.
func (low *floor) recordServed(served *pipeline.Forecast, now time.Time) {
	if age := now.Sub(low.begun).Abs(); age > floorSpan {
		if age > 2*floorSpan {
			low.newest = 0 // there were no forecasts for a while
		}
		low.older, low.newest, low.begun = low.newest, 0, now
	}
	low.newest, low.noted = max(low.newest, served.ServedLoad), now
}

// roundingSlack keeps rounding errors from adding an instance.
const roundingSlack = 1e-9

// raise raises a forecast that lacks a part of the load, so that it does not remove instances. A floor that is too old
// is ignored, because the load may have changed since.
func (low *floor) raise(f *pipeline.Forecast, p *pipeline.Params, now time.Time) {
	limit := floorSpan + p.StaleAfter
	if snapshot.TooOld(low.noted, now, limit) || snapshot.TooOld(now, low.noted, limit) { // or the clock was set back
		return
	}
	f.ServedLoad = max(f.ServedLoad, low.older, low.newest)
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

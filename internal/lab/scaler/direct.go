package scaler

import (
	"time"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/pipeline"
)

// directPeriod is how often a scaler looks that sets the replicas itself.
const directPeriod = 5 * time.Second

// direct does what its forecast's decision says, without an HPA.
type direct struct {
	clock
	feed *feed
}

// Forecast implements Forecaster.
func (d *direct) Forecast() (pipeline.Forecast, bool) { return d.feed.last, d.feed.last.Now != 0 }

// newPaper returns the paper's scaler: readings of a second come in batches of five, and N* is done each 5 s.
func newPaper(s Setup) (lab.Scaler, error) {
	p := s.Paper
	p.ReactionDelay = 0
	f, err := newFeed(p, &s, s.Sources.Paper, 0)
	return &direct{clock: newClock(s.Seed, "the paper's scaler", directPeriod), feed: f}, err
}

// newDirect returns Foresail setting the replicas itself each 5 s.
func newDirect(s Setup) (lab.Scaler, error) {
	p := s.params()
	p.ReactionDelay = 0
	f, err := newFeed(p, &s, s.Sources.Foresail, warmUpTicks*p.Interval)
	return &direct{clock: newClock(s.Seed, "the direct scaler", directPeriod), feed: f}, err
}

// params are those of Foresail's forecasts.
func (s *Setup) params() pipeline.Params {
	p := s.Params
	if s.Startup > 0 {
		p.InitTimeout = s.Startup
	}
	return p
}

// Decide implements lab.Scaler. Without a forecast the replicas stay as they are.
func (d *direct) Decide(v *lab.View) int {
	d.tick()
	_, decision, err := d.feed.forecast(v)
	if err != nil {
		return v.Target
	}
	return decision.Wanted
}

package scaler

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler/hpa"
	"github.com/foresail/foresail/pipeline"
)

// directPeriod is how often a scaler without an HPA acts.
const directPeriod = 5 * time.Second

// direct follows the decision of its forecast, without an HPA.
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
	p := paramsOf(&s)
	p.ReactionDelay = 0
	f, err := newFeed(p, &s, s.Sources.Foresail, warmUpTicks*p.Interval)
	return &direct{clock: newClock(s.Seed, "the direct scaler", directPeriod), feed: f}, err
}

// paramsOf are those of Foresail's forecasts.
func paramsOf(s *Setup) pipeline.Params {
	p := s.Params
	if s.Startup > 0 {
		p.StartupTime = s.Startup
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
	return decision.Desired
}

// bound knows the load.
type bound struct {
	clock
	load  lab.Load
	ahead int64 // how far it sees (ms)
	need  func(rate float64) int
}

func newBound(s Setup, ahead time.Duration) (*bound, error) {
	if s.Load == nil {
		return nil, errors.New("load: absent: must be given to a bound")
	}
	if !(s.Cost > 0) {
		return nil, fmt.Errorf("cost: %v: must be above 0", s.Cost)
	}
	need := func(rate float64) int { return int(math.Ceil(rate*s.Cost/s.Threshold - 1e-9)) }
	return &bound{clock: clock{period: 1000}, load: s.Load, ahead: ahead.Milliseconds(), need: need}, nil
}

// newClairvoyant returns the least pods that keep the load of every second at or below the
// threshold: each is ordered one start time ahead, and removed once the load does without it and
// will do so for as long as another would take to start. At a time t these are the pods that the
// largest load from t to t plus the start time takes.
func newClairvoyant(s Setup) (lab.Scaler, error) {
	if s.Startup <= 0 {
		return nil, fmt.Errorf("startup: %s: must be above 0s for clairvoyant", s.Startup)
	}
	return newBound(s, s.Startup)
}

// newInstant returns the pods that the load of the moment takes, up and down, each second: what no
// scaler that has to measure can beat without a forecast. Pods take their time to start
// nevertheless, so that it is short of pods whenever the load rises by more than its pods have room
// for.
func newInstant(s Setup) (lab.Scaler, error) { return newBound(s, 0) }

// newInstantHPA returns an HPA with the default behaviour that reads the exact load of the moment
// each 15 s: what no metric can beat through such an HPA without a forecast.
func newInstantHPA(s Setup) (lab.Scaler, error) {
	known, err := newBound(s, 0)
	if err != nil {
		return nil, err
	}
	h, err := hpa.New(s.Min, s.Max, nil, hpa.DefaultFlags())
	metrics := func(v *lab.View) []hpa.Metric {
		return []hpa.Metric{hpa.External{Total: milli(known.load.Rate(v.Now) * s.Cost), Target: milli(s.Threshold),
			Average: true}}
	}
	return &autoscaled{clock: newClock(s.Seed, "the HPA", hpaPeriod), hpa: h, metrics: metrics, pods: podsOf}, err
}

// Decide implements lab.Scaler.
func (b *bound) Decide(v *lab.View) int {
	b.tick()
	most := 0.0
	for t := v.Now; t < v.Now+b.ahead; t += 1000 {
		most = max(most, b.load.Rate(t))
	}
	return b.need(max(most, b.load.Rate(v.Now+b.ahead)))
}

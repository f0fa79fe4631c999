package scaler

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/foresail/foresail/internal/lab"
)

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

// newClairvoyant returns the least pods that keep the load of every second at or below the threshold: each is ordered one
// start time ahead, and removed once the load does without it and will do so for as long as another would take to start.
// At a time t these are the pods that the largest load from t to t plus the start time takes.
func newClairvoyant(s Setup) (lab.Scaler, error) {
	if s.Startup <= 0 {
		return nil, fmt.Errorf("startup: %s: must be above 0s for one who orders pods ahead", s.Startup)
	}
	return newBound(s, s.Startup)
}

// newInstant returns the pods that the load of the moment takes, up and down, each second: what no scaler that has to
// measure can beat without a forecast. Pods take their time to start nevertheless, so that it is short of pods whenever the
// load rises by more than its pods have room for.
func newInstant(s Setup) (lab.Scaler, error) { return newBound(s, 0) }

// Decide implements lab.Scaler.
func (b *bound) Decide(v *lab.View) int {
	b.tick()
	most := 0.0
	for t := v.Now; t < v.Now+b.ahead; t += 1000 {
		most = max(most, b.load.Rate(t))
	}
	return b.need(max(most, b.load.Rate(v.Now+b.ahead)))
}

package forecaster

import (
	"errors"
	"fmt"
	"time"

	"github.com/foresail/foresail/adapter/snapshot"
)

const (
	// settleLimit is how long a start waits for every PredictedMetric to have its data.
	settleLimit = time.Minute
	// stallLimit is how long no round of forecasts may go by unnoticed.
	stallLimit = 10 * Period
)

// Ready tells why the forecaster has no data to serve, nil if it has. At its start it waits until every PredictedMetric
// whose target has ready pods has been read for long enough, or a minute, so that a rolling update of the adapter
// leaves no gap. From then on one PredictedMetric without data does not count: the others are to be served, and a
// refusal that says why is worth more than a server that cannot be reached.
func (f *Forecaster) Ready() error {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.startedAt.IsZero() {
		return errors.New("the forecaster has not started")
	}
	if idle := now.Sub(f.lastRound); idle > stallLimit {
		return fmt.Errorf("no forecast has been made for %s", idle.Round(time.Second))
	}
	if f.settled || now.Sub(f.startedAt) > settleLimit {
		f.settled = true
		return nil
	}
	waiting := 0
	for _, feed := range f.feeds {
		s := feed.Snapshot()
		var u *snapshot.Unavailable
		if errors.As(s.Err, &u) && (u.Reason == snapshot.WaitingForSamples || u.Reason == snapshot.WarmingUp) && s.Ready > 0 {
			waiting++
		}
	}
	if waiting > 0 {
		return fmt.Errorf("%d of %d PredictedMetrics wait for their first data", waiting, len(f.feeds))
	}
	f.settled = true
	return nil
}

package snapshot

import (
	"fmt"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// Explain says in a sentence what was decided and from which numbers, or why there is no forecast. Logs, events and
// status all tell it in these words.
func (s *Snapshot) Explain() string {
	if s.Err != nil {
		return s.Err.Error()
	}
	f, d := &s.Forecast, s.Decision
	load := fmt.Sprintf("%.3g a pod now, %.3g in %s with %d replicas, threshold %.3g",
		f.LoadNow, f.LoadPredicted, f.Horizon.Round(time.Second), f.Target, s.Threshold)
	return fmt.Sprintf("%s: %s", verdict(d, f.Target), load)
}

func verdict(d pipeline.Decision, target int) string {
	if d.Wanted == target && d.Reason == pipeline.TrendRising {
		return fmt.Sprintf("%d replicas are enough although the load is rising steeply", target)
	}
	switch d.Reason {
	case pipeline.AboveThreshold:
		return fmt.Sprintf("%d replicas instead of %d, the predicted load is above the threshold", d.Wanted, target)
	case pipeline.TrendRising:
		return fmt.Sprintf("%d replicas instead of %d, the load is rising steeply", d.Wanted, target)
	case pipeline.Headroom:
		return fmt.Sprintf("%d replicas instead of %d do", d.Wanted, target)
	case pipeline.BelowMinimum:
		return fmt.Sprintf("%d replicas instead of %d, the minimum", d.Wanted, target)
	case pipeline.AtMaximum:
		return fmt.Sprintf("%d replicas, the maximum, although the predicted load needs more", target)
	case pipeline.ScaleUpPending:
		return fmt.Sprintf("%d replicas kept, not all of them have started", target)
	case pipeline.StillOverloaded:
		return fmt.Sprintf("%d replicas kept, the load is falling but still above the threshold", target)
	case pipeline.CoolingDown:
		return fmt.Sprintf("%d replicas kept until a cooldown has passed", target)
	default:
		return fmt.Sprintf("%d replicas fit", target)
	}
}

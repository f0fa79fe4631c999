package snapshot

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// Explain returns a sentence that says what was decided and from which values, or why there is no forecast. Logs, events
// and status all use it.
func (s *Snapshot) Explain() string {
	if s.Err != nil {
		return s.Err.Error()
	}
	f, d := &s.Forecast, s.Decision
	load := fmt.Sprintf("%s a pod now, %s in %s with %d replicas, threshold %s",
		s.round(f.LoadNow), s.round(f.LoadPredicted), f.Horizon.Round(time.Second), f.Target, s.round(s.Threshold))
	if s.Whole {
		load = fmt.Sprintf("%s altogether now, %s in %s, %d replicas, threshold %s a pod",
			s.round(f.Level), s.round(f.Total), f.Horizon.Round(time.Second), f.Target, s.round(s.Threshold))
	}
	if len(s.ActiveSchedules) > 0 {
		load += "; schedules: " + strings.Join(s.ActiveSchedules, ", ")
	}
	return fmt.Sprintf("%s: %s", verdict(d, f.Target), load)
}

// round formats a load of one instance with the decimals that matter beside the threshold: about a thousandth of it.
func (s *Snapshot) round(v float64) string {
	decimals := 0.0
	if s.Threshold > 0 {
		decimals = max(0, 2-math.Floor(math.Log10(s.Threshold)))
	}
	unit := math.Pow(10, decimals)
	return strconv.FormatFloat(math.Round(v*unit)/unit, 'f', -1, 64)
}

func verdict(d pipeline.Decision, target int) string {
	if d.Desired == target && d.Reason == pipeline.TrendRising {
		return fmt.Sprintf("%d replicas are enough although the load is rising steeply", target)
	}
	switch d.Reason {
	case pipeline.AboveThreshold:
		return fmt.Sprintf("%d replicas instead of %d, the predicted load is above the threshold", d.Desired, target)
	case pipeline.TrendRising:
		return fmt.Sprintf("%d replicas instead of %d, the load is rising steeply", d.Desired, target)
	case pipeline.Headroom:
		return fmt.Sprintf("%d replicas instead of %d do", d.Desired, target)
	case pipeline.BelowMinimum:
		return fmt.Sprintf("%d replicas instead of %d, the minimum", d.Desired, target)
	case pipeline.AtMaximum:
		return fmt.Sprintf("%d replicas, the maximum, although the predicted load needs more", target)
	case pipeline.ScaleUpPending:
		return fmt.Sprintf("%d replicas kept, not all of them have started", target)
	case pipeline.StillOverloaded:
		return fmt.Sprintf("%d replicas kept, the load is falling but still above the threshold", target)
	case pipeline.Activated:
		return fmt.Sprintf("%d replicas instead of none, the predicted load is above the activation", d.Desired)
	case pipeline.Idle:
		if target == 0 {
			return "no replicas, the predicted load is not above the activation"
		}
		return fmt.Sprintf("no replicas instead of %d, the predicted load is not above the activation", target)
	case pipeline.CoolingDown:
		return fmt.Sprintf("%d replicas kept until a cooldown has passed", target)
	default:
		return fmt.Sprintf("%d replicas fit", target)
	}
}

package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/internal/keepalive"
)

// demand is the number of workers that the load needs, and the number worth keeping because the
// load is likely to return.
type demand struct {
	history keepalive.History // including the present need
	keepalive.Plan
}

// observeDemand adds the present need to the history. While it is unknown, idle workers may have
// been needed unnoticed, so their idle periods are dropped.
func observeDemand(c *census, all recommendations) demand {
	d := demand{history: c.Record.Demand.Clone()}
	level := slices.ContainsFunc(c.Signals, func(s Signal) bool { return s.Level && !s.InformsOnly })
	switch known := c.WorkersErr == "" && len(c.unknown) == 0; {
	case c.Pool.Idle.WaitCost <= 0, level:
		return demand{}
	case !known, c.Pool.Deleting, c.Pending.BackingOff > 0, c.Record.Failures > 0: // failed launches show no need
		d.history.Resume(d.history.Needed)
		return d
	case decisionGap(c):
		d.history.Resume(required(c, all))
	default:
		d.history.Observe(c.Now, required(c, all))
	}
	d.Plan = d.history.Plan(c.Now, costs(c, d.history.Needed))
	d.Keep, d.Start = min(d.Keep, c.Pool.Max), min(d.Start, c.Pool.Max)
	return d
}

// required returns the number of workers that the load needs now, by the signals alone: what they
// recommend and can be launched, and as many of the existing workers as the present and predicted
// load needs with its margin. Pending pods that need more than that are ignored: they need a
// certain kind of node, or a node for an unknown reason, and are not load that comes and goes.
func required(c *census, all recommendations) int {
	needed := c.Pool.Min
	for _, r := range all {
		if r.counts() && r.signal {
			needed = max(needed, r.attainable())
		}
	}
	for _, s := range c.Signals {
		if !s.InformsOnly {
			needed = max(needed, min(s.Fits, len(c.staying)))
		}
	}
	return min(needed, c.Pool.Max)
}

// costs returns the cost of a missing worker: the pods of one worker wait for the duration of a
// launch.
func costs(c *census, needed int) keepalive.Costs {
	pods := c.Pending.Pods
	for _, w := range c.staying {
		pods += w.Pods
	}
	startup := max(c.StartupTime, time.Second)
	waiting := max(1, float64(pods)/float64(max(1, needed)))
	return keepalive.Costs{Missing: time.Duration(c.Pool.Idle.WaitCost * waiting * float64(startup)), Startup: startup}
}

// recommend returns the number of workers to have ready when the load returns, if it is more than
// the load needs now.
func (d demand) recommend() recommendations {
	if d.Start <= d.history.Needed {
		return nil
	}
	out := Recommendation{Signal: "returning", Nodes: d.Start, Known: true, Reason: d.returns(d.Start)}
	return recommendations{{Recommendation: out, cause: LoadReturns}}
}

// returns describes why a number of workers is worth keeping.
func (d demand) returns(workers int) string {
	times, median := d.history.Returns(workers)
	return fmt.Sprintf("%s were needed again in %s, typically after %s",
		count(workers, "worker"), count(times, "case"), median.Round(time.Second))
}

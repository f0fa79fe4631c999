package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/internal/keepalive"
)

// demand is how many workers the load needs, and how many are worth having because it is likely to
// need them again.
type demand struct {
	history keepalive.History // with the present need
	keepalive.Plan
}

// observeDemand adds the present need to the history. While it is not known, idle workers may have
// been needed unseen, so their idle periods are dropped.
func observeDemand(c *census, all recommendations) demand {
	d := demand{history: c.Record.Demand.Clone()}
	level := slices.ContainsFunc(c.Signals, func(s Signal) bool { return s.Level && !s.InformsOnly })
	switch known := c.WorkersErr == "" && len(c.unknown) == 0; {
	case c.Pool.Idle.WaitCost <= 0, level:
		return demand{}
	case !known, c.Pool.Deleting, c.Pending.BackingOff > 0, c.Record.Failures > 0: // futile launches are no need
		d.history.Resume(d.history.Needed)
		return d
	case unseen(c):
		d.history.Resume(required(c, all))
	default:
		d.history.Observe(c.Now, required(c, all))
	}
	d.Plan = d.history.Plan(c.Now, costs(c, d.history.Needed))
	d.Keep, d.Start = min(d.Keep, c.Pool.Max), min(d.Start, c.Pool.Max)
	return d
}

// required returns how many workers the load needs now, by the signals alone: those that they
// recommend and that can be launched, and of the existing ones as many as the present and predicted
// load needs with its margin. Pending pods that need a worker beyond that do so for where they may
// run, or for an unknown reason: they are no load that comes and goes.
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

// costs returns the cost of a missing worker: the pods of one wait for the duration of a launch.
func costs(c *census, needed int) keepalive.Costs {
	pods := c.Pending.Pods
	for _, w := range c.staying {
		pods += w.Pods
	}
	startup := max(c.StartupTime, time.Second)
	waiting := max(1, float64(pods)/float64(max(1, needed)))
	return keepalive.Costs{Missing: time.Duration(c.Pool.Idle.WaitCost * waiting * float64(startup)), Startup: startup}
}

// recommend returns the workers to have ready when the load returns, if these are more than it
// needs.
func (d demand) recommend() recommendations {
	if d.Start <= d.history.Needed {
		return nil
	}
	out := Recommendation{Signal: "returning", Nodes: d.Start, Known: true, Reason: d.returns(d.Start)}
	return recommendations{{Recommendation: out, cause: LoadReturns}}
}

// returns describes why a number of workers is worth having.
func (d demand) returns(workers int) string {
	times, median := d.history.Returns(workers)
	return fmt.Sprintf("%s were needed again in %s, as a rule after %s",
		count(workers, "worker"), count(times, "case"), median.Round(time.Second))
}

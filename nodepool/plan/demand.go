package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/internal/keepalive"
)

// demand is how many workers the load needs, and how many are worth having because it is likely to need
// them again.
type demand struct {
	history keepalive.History // with what is needed now
	keepalive.Plan
}

// demand observes what is needed now. While that is not known, idle workers may have been needed without
// being seen, so their idle periods are dropped.
func (v *view) demand() demand {
	d := demand{history: v.State.Demand.Clone()}
	level := slices.ContainsFunc(v.Signals, func(s Signal) bool { return s.Level && !s.InformsOnly })
	switch known := v.WorkersErr == "" && len(v.unknown()) == 0; {
	case v.Pool.Idle.WaitCost <= 0, level:
		return demand{}
	case !known, v.Pool.Deleting, v.Pending.BackingOff > 0, v.State.Failures > 0: // or what did not help would be learned as needed
		d.history.Resume(d.history.Needed)
		return d
	case v.unseen():
		d.history.Resume(v.required())
	default:
		d.history.Observe(v.Now, v.required())
	}
	d.Plan = d.history.Plan(v.Now, v.costs(d.history.Needed))
	d.Keep, d.Start = min(d.Keep, v.Pool.Max), min(d.Start, v.Pool.Max)
	return d
}

// required is how many workers the load needs now, by the signals alone: as many as they recommend and can be launched, and of
// those there are, as many as the present and predicted load needs with its margin. Pending pods that need a worker beyond that
// do so for where they may run, or for a reason that is not known, and are no load that comes and goes.
func (v *view) required() int {
	needed := v.Pool.Min
	for _, r := range v.recommendations {
		if r.counts() && r.signal {
			needed = max(needed, r.attainable())
		}
	}
	for _, s := range v.Signals {
		if !s.InformsOnly {
			needed = max(needed, min(s.Fits, len(v.staying)))
		}
	}
	return min(needed, v.Pool.Max)
}

// costs returns what a missing worker costs: the pods of one wait for as long as a launch takes.
func (v *view) costs(needed int) keepalive.Costs {
	pods := v.Pending.Pods
	for _, w := range v.staying {
		pods += w.Pods
	}
	startup := max(v.StartupTime, time.Second)
	waiting := max(1, float64(pods)/float64(max(1, needed)))
	return keepalive.Costs{Missing: time.Duration(v.Pool.Idle.WaitCost * waiting * float64(startup)), Startup: startup}
}

// fromDemand recommends the workers to have ready when the load returns, if these are more than it needs.
func (v *view) fromDemand() []recommendation {
	nodes := v.expected.Start
	if nodes <= v.expected.history.Needed {
		return nil
	}
	out := Recommendation{Signal: "returning", Nodes: nodes, Known: true, Reason: v.returns(nodes)}
	return []recommendation{{Recommendation: out, cause: LoadReturns}}
}

// returns describes why a number of workers is worth having.
func (v *view) returns(workers int) string {
	times, median := v.expected.history.Returns(workers)
	return fmt.Sprintf("%s were needed again in %s, as a rule after %s", count(workers, "worker"), count(times, "case"), median.Round(time.Second))
}

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// recommendation is a [Recommendation] with its role in the decision.
type recommendation struct {
	Recommendation
	cause      Reason // reason of a launch that follows it
	signal     bool   // it comes from a signal
	pods       bool   // its number includes what pending pods need
	waits      bool   // it is above the workers, but not for long enough
	suppressed bool   // mode All: the other trigger does not agree
	futile     int    // those of its nodes that are for pods which nothing waits for, because the cloud has no capacity
}

// attainable returns its nodes without those for which the cloud has no capacity.
func (r recommendation) attainable() int { return r.Nodes - r.futile }

// counts reports whether the recommendation may raise the number of workers.
func (r recommendation) counts() bool { return r.Known && !r.waits && !r.suppressed }

// recommend collects the recommendations of signals, pending pods, the seasonal floor and the
// minimum.
func recommend(c *census) recommendations {
	all := make(recommendations, 0, len(c.Signals)+3)
	for _, s := range c.Signals {
		if !s.InformsOnly {
			all = append(all, fromSignal(c, s))
		}
	}
	all = append(all, fromPending(c))
	if c.Pool.Mode == All {
		all.requireBoth(len(c.staying))
	}
	if c.Seasonal != nil {
		all = append(all, fromSeason(c.Seasonal))
	}
	reason := fmt.Sprintf("the minimum is %d", c.Pool.Min)
	return append(all, recommendation{
		Recommendation: Recommendation{Signal: "minimum", Nodes: c.Pool.Min, Known: true, Reason: reason},
		cause:          BelowMinimum,
	})
}

func fromSignal(c *census, s Signal) recommendation {
	out := recommendation{
		Recommendation: Recommendation{Signal: s.Name, Known: s.Known},
		cause:          LoadPredicted, signal: true, pods: s.WithPending,
	}
	if !s.Known {
		out.Reason = fmt.Sprintf("%s is unknown: %s", s.Name, s.Err)
		return out
	}
	out.Nodes = max(0, s.Desired)
	out.Reason = fmt.Sprintf("%s is %.4g and will be %.4g in %s, with a threshold of %.4g",
		s.Name, s.Now, s.Predicted, s.Horizon.Truncate(time.Second), s.Threshold)
	if out.Nodes > len(c.staying) && s.For > 0 && (s.Since.IsZero() || left(s.Since, s.For, c.Now) > 0) {
		out.waits = true
		out.Reason += fmt.Sprintf("; it recommends %d, but not yet for %s", out.Nodes, s.For)
	}
	return out
}

// fromPending recommends the existing workers plus the nodes that fit the pods which have been
// unschedulable for long enough.
func fromPending(c *census) recommendation {
	p := c.Pending
	out := recommendation{cause: PodsPending, pods: true}
	out.Signal, out.Known = "pending", p.Known
	switch {
	case !p.Known:
		out.Reason = "pods are unknown"
		return out
	case p.Due > 0 && p.Nodes > 0:
		out.Nodes = add(len(c.staying), p.Nodes)
		out.futile = p.NoCapacityNodes
		if p.Due-p.NoCapacityDue == p.Overlooked { // and no other pod needs the existing workers
			out.futile = out.Nodes
		}
		out.Reason = fmt.Sprintf("%s unschedulable for longer than %s, the oldest for %s, and %s would hold them",
			count(p.Due, "pod"), c.Pool.PendingFor, p.OldestFor.Truncate(time.Second), count(p.Nodes, "more node"))
	case p.Due > p.Overlooked:
		out.Nodes = len(c.staying)
		out.Reason = fmt.Sprintf("%s unschedulable for longer than %s, and %s",
			count(p.Due, "pod"), c.Pool.PendingFor, p.held())
	case p.Pods > p.Due:
		out.Nodes, out.waits = len(c.staying), true
		out.Reason = fmt.Sprintf("%s unschedulable, none for longer than %s", count(p.Pods, "pod"), c.Pool.PendingFor)
	case p.Pods > 0:
		out.Reason = fmt.Sprintf("%s unschedulable, and %s", count(p.Due, "pod"), p.held())
	default:
		out.Reason = "no pod is unschedulable"
	}
	out.Reason += p.notes()
	return out
}

func fromSeason(s *Seasonal) recommendation {
	out := recommendation{Recommendation: Recommendation{Signal: "seasonal", Known: s.Known}, cause: SeasonalFloor}
	if !s.Known {
		out.Reason = "past weeks are unknown: " + s.Err
		return out
	}
	out.Nodes = max(0, s.Nodes)
	out.Reason = fmt.Sprintf("past weeks needed %d at this hour, with a confidence of %.2f", out.Nodes, s.Confidence)
	return out
}

// recommendations are those of all sources, in their order.
type recommendations []recommendation

// requireBoth implements mode All: signals and pending pods count only if both recommend more
// workers. Pending pods then decide the number.
func (all recommendations) requireBoth(workers int) {
	signals, pending := false, false
	for _, r := range all {
		if r.counts() && r.Nodes > workers {
			signals, pending = signals || r.signal, pending || !r.signal
		}
	}
	for i := range all {
		all[i].suppressed = all[i].signal || !signals || !pending
	}
}

// nodes returns the largest recommendation that counts.
func (all recommendations) nodes() int {
	return all.largest(func(r recommendation) int { return r.Nodes })
}

// attainable returns the largest recommendation that counts, without nodes for which the cloud has
// no capacity.
func (all recommendations) attainable() int {
	return all.largest(recommendation.attainable)
}

// attainableNow is attainable without recommendations for load that is likely to return.
func (all recommendations) attainableNow() int {
	return all.largest(func(r recommendation) int {
		if r.cause == LoadReturns {
			return 0
		}
		return r.attainable()
	})
}

// largest returns the largest number of the recommendations that count.
func (all recommendations) largest(of func(recommendation) int) int {
	most := 0
	for _, r := range all {
		if r.counts() {
			most = max(most, of(r))
		}
	}
	return most
}

// dominant returns the recommendation that decides the number of workers: the first of the largest
// ones that count.
func (all recommendations) dominant() recommendation {
	var out recommendation
	for _, r := range all {
		if r.counts() && r.Nodes > out.Nodes {
			out = r
		}
	}
	return out
}

// withheld returns why a recommendation for more workers does not count, "" if there is none.
func (all recommendations) withheld(workers int) (Reason, string) {
	var waiting, alone *recommendation
	for i := range all {
		r := &all[i]
		more := r.Known && (r.Nodes > workers || r.waits)
		switch {
		case !more:
		case r.waits && waiting == nil:
			waiting = r
		case r.suppressed && alone == nil:
			alone = r
		}
	}
	switch {
	case alone != nil:
		return SignalsDisagree,
			"a signal and pending pods must both recommend more workers, and only one does: " + alone.Reason
	case waiting != nil:
		return NotSustained, waiting.Reason
	}
	return "", ""
}

// load describes the load briefly: the reason of the known signal that recommends most.
func (all recommendations) load() string {
	dominant := all[0]
	for _, r := range all {
		if r.signal && r.Known && (!dominant.signal || !dominant.Known || r.Nodes > dominant.Nodes) {
			dominant = r
		}
	}
	return dominant.Reason
}

// ranked returns all recommendations, the largest first.
func (all recommendations) ranked() []Recommendation {
	out := make([]Recommendation, len(all))
	for i, r := range all {
		out[i] = r.Recommendation
	}
	slices.SortStableFunc(out, func(a, b Recommendation) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return out
}

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// recommendation is a [Recommendation] with how it takes part in the decision.
type recommendation struct {
	Recommendation
	cause      Reason // of a launch that follows it
	signal     bool   // it is a signal's
	pods       bool   // its number includes what pending pods need
	waits      bool   // it is above the workers, but not for long enough
	suppressed bool   // mode All: the other trigger does not agree
	// futile is how many of its nodes are for pods that nothing waits for, as the cloud has none of the instances
	// that they need.
	futile int
}

// attainable returns the nodes that it recommends, without those that the cloud has no capacity for.
func (r recommendation) attainable() int { return r.Nodes - r.futile }

// counts reports whether the recommendation may raise the number of workers.
func (r recommendation) counts() bool { return r.Known && !r.waits && !r.suppressed }

// recommend collects the recommendations of signals, pending pods, the seasonal floor and the minimum.
func (v *view) recommend() []recommendation {
	all := make([]recommendation, 0, len(v.Signals)+3)
	for _, s := range v.Signals {
		if !s.InformsOnly {
			all = append(all, v.fromSignal(s))
		}
	}
	all = append(all, v.fromPending())
	if v.Pool.Mode == All {
		requireBoth(all, len(v.staying))
	}
	if v.Seasonal != nil {
		all = append(all, v.fromSeason())
	}
	return append(all, recommendation{
		Recommendation: Recommendation{Signal: "minimum", Nodes: v.Pool.Min, Known: true, Reason: fmt.Sprintf("the minimum is %d", v.Pool.Min)},
		cause:          BelowMinimum,
	})
}

func (v *view) fromSignal(s Signal) recommendation {
	out := recommendation{Recommendation: Recommendation{Signal: s.Name, Known: s.Known}, cause: LoadPredicted, signal: true, pods: s.WithPending}
	if !s.Known {
		out.Reason = fmt.Sprintf("%s is not known: %s", s.Name, s.Err)
		return out
	}
	out.Nodes = max(0, s.Want)
	out.Reason = fmt.Sprintf("%s is %.4g and will be %.4g in %s, with a threshold of %.4g", s.Name, s.Now, s.Predicted, s.Horizon.Truncate(time.Second), s.Threshold)
	if out.Nodes > len(v.staying) && s.For > 0 && (s.Since.IsZero() || left(s.Since, s.For, v.Now) > 0) {
		out.waits = true
		out.Reason += fmt.Sprintf("; it recommends %d, but not yet for %s", out.Nodes, s.For)
	}
	return out
}

// fromPending recommends the workers there are plus the nodes that hold the pods which have been unschedulable for long
// enough (seed 000: desiredDelta = ceil(pendingPods / podsPerNode), where pods have no requests).
func (v *view) fromPending() recommendation {
	p := v.Pending
	out := recommendation{Recommendation: Recommendation{Signal: "pending", Known: p.Known}, cause: PodsPending, pods: true}
	switch {
	case !p.Known:
		out.Reason = "pods are not known"
		return out
	case p.Due > 0 && p.Nodes > 0:
		out.Nodes = add(len(v.staying), p.Nodes)
		out.futile = p.NoCapacityNodes
		if p.Due-p.NoCapacityDue == p.Overlooked { // and no other pod needs the workers that there are
			out.futile = out.Nodes
		}
		out.Reason = fmt.Sprintf("%s unschedulable for longer than %s, the oldest for %s, and %s would hold them",
			count(p.Due, "pod"), v.Pool.PendingFor, p.OldestFor.Truncate(time.Second), count(p.Nodes, "more node"))
	case p.Due > p.Overlooked:
		out.Nodes = len(v.staying)
		out.Reason = fmt.Sprintf("%s unschedulable for longer than %s, and %s", count(p.Due, "pod"), v.Pool.PendingFor, p.held())
	case p.Pods > p.Due:
		out.Nodes, out.waits = len(v.staying), true
		out.Reason = fmt.Sprintf("%s unschedulable, none for longer than %s", count(p.Pods, "pod"), v.Pool.PendingFor)
	case p.Pods > 0:
		out.Reason = fmt.Sprintf("%s unschedulable, and %s", count(p.Due, "pod"), p.held())
	default:
		out.Reason = "no pod is unschedulable"
	}
	if p.Filtered > 0 {
		out.Reason += fmt.Sprintf("; the scheduler extender filtered the existing nodes for %d of them, as these are predicted to be overloaded", p.Filtered)
	}
	if len(p.Unhelped) > 0 {
		out.Reason += fmt.Sprintf("; %s could run on no node of the pool: %s", count(len(p.Unhelped), "pod"), p.examples())
	}
	return out
}

// examples names an unhelped pod for each reason, of three at most.
func (p Pending) examples() string {
	var out, reasons []string
	for _, u := range p.Unhelped {
		if len(out) < 3 && !slices.Contains(reasons, u.Reason) {
			out, reasons = append(out, u.Pod+", as "+u.Reason), append(reasons, u.Reason)
		}
	}
	return strings.Join(out, "; ")
}

// held returns why the due pods need no new node.
func (p Pending) held() string {
	switch {
	case p.Waiting > 0:
		return fmt.Sprintf("%d of them have room once nodes that are being emptied are deleted", p.Waiting)
	case p.Room <= 0:
		return "nodes that are starting will hold them"
	case p.Room >= p.Due:
		return "existing nodes have room for them: the events of the pods show why the scheduler does not use these"
	}
	return fmt.Sprintf("existing nodes have room for %d of them, and nodes that are starting will hold the others", p.Room)
}

func (v *view) fromSeason() recommendation {
	s := v.Seasonal
	out := recommendation{Recommendation: Recommendation{Signal: "seasonal", Known: s.Known}, cause: SeasonalFloor}
	if !s.Known {
		out.Reason = "past weeks are not known: " + s.Err
		return out
	}
	out.Nodes = max(0, s.Nodes)
	out.Reason = fmt.Sprintf("past weeks needed %d at this hour, with a confidence of %.2f", out.Nodes, s.Confidence)
	return out
}

// requireBoth implements mode All: signals and pending pods count only if both recommend more workers. Pending pods then
// give the number (seed 003).
func requireBoth(all []recommendation, workers int) {
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

// recommended is the largest recommendation that counts.
func (v *view) recommended() int {
	return v.largest(func(r recommendation) int { return r.Nodes })
}

// largest returns the largest number of the recommendations that count.
func (v *view) largest(of func(recommendation) int) int {
	most := 0
	for _, r := range v.recommendations {
		if r.counts() {
			most = max(most, of(r))
		}
	}
	return most
}

// attainableNow is attainable without what is recommended for load that is likely to return.
func (v *view) attainableNow() int {
	return v.largest(func(r recommendation) int {
		if r.cause == LoadReturns {
			return 0
		}
		return r.attainable()
	})
}

// attainable is the largest recommendation that counts, without nodes that the cloud has no capacity for.
func (v *view) attainable() int {
	return v.largest(recommendation.attainable)
}

// dominant returns the recommendation that decides the number of workers: the first of the largest ones that count.
func (v *view) dominant() recommendation {
	var out recommendation
	for _, r := range v.recommendations {
		if r.counts() && r.Nodes > out.Nodes {
			out = r
		}
	}
	return out
}

// withheld returns why a recommendation above the workers does not count; "" if there is none.
func (v *view) withheld() (Reason, string) {
	var waiting, alone *recommendation
	for i := range v.recommendations {
		r := &v.recommendations[i]
		more := r.Known && (r.Nodes > len(v.staying) || r.waits)
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
		return SignalsDisagree, "a signal and pending pods must both recommend more workers, and only one does: " + alone.Reason
	case waiting != nil:
		return NotSustained, waiting.Reason
	}
	return "", ""
}

// ranked returns all recommendations, the largest first.
func (v *view) ranked() []Recommendation {
	out := make([]Recommendation, len(v.recommendations))
	for i, r := range v.recommendations {
		out[i] = r.Recommendation
	}
	slices.SortStableFunc(out, func(a, b Recommendation) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return out
}

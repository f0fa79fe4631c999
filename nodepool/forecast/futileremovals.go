package forecast

import (
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// futileRemovalBackoffMin is how long nodes stay after a removal to save money turned out to need a new
	// node for the evicted pods. It doubles each time.
	futileRemovalBackoffMin = 10 * time.Minute
	// replacedWithin is how long after the end of a scale-down replacements of its evicted pods may
	// still be found to fit nowhere.
	replacedWithin = 30 * time.Second
)

// OwnersOn returns the controllers of the pods on nodes, as many as a record can hold.
func OwnersOn(o *observe.Observation, nodes []string) []string {
	var out []string
	for _, name := range nodes {
		if n := o.NodeNamed(name); n != nil {
			out = append(out, ownersOf(n)...)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), state.MaxOwners)]
}

func ownersOf(n *cluster.Node) []string {
	var out []string
	for _, p := range n.Pods {
		if p.Owner != "" {
			out = append(out, string(p.Owner))
		}
	}
	return out
}

func noteFutileRemoval(r *state.Record, owner string, now time.Time) {
	at := slices.IndexFunc(r.FutileRemovals, func(u state.FutileRemoval) bool { return u.Owner == owner })
	if at < 0 {
		if len(r.FutileRemovals) >= state.MaxOwners {
			return
		}
		at = len(r.FutileRemovals)
		r.FutileRemovals = append(r.FutileRemovals, state.FutileRemoval{Owner: owner})
	}
	u := &r.FutileRemovals[at]
	if u.Until.After(now) {
		return // another pod of the same scale-down
	}
	wait := futileRemovalBackoffMin
	for range u.Times {
		wait = min(2*wait, state.FutileRemovalBackoffMax)
	}
	u.Times, u.Until = u.Times+1, now.Add(wait)
}

// NoteFutileRemovals records whether a launch that begins now is for pods that the last scale-down evicted.
// Their room existed, but the scheduler gave it to other pods.
func (f *Forecast) NoteFutileRemovals(r *state.Record, now time.Time) {
	s := r.Saved
	if s == nil {
		return
	}
	eligible := setOf(f.new)
	undone := false
	for _, p := range f.eligible {
		owner := ownerOf(p.Pod)
		replaces := !p.Since.Before(s.Began) && (s.Ended.IsZero() || p.Since.Before(s.Ended.Add(replacedWithin)))
		if eligible[nameOf(p).String()] && replaces && slices.Contains(s.Owners, owner) {
			noteFutileRemoval(r, owner, now)
			undone = true
		}
	}
	if undone {
		r.Saved = nil // so that it is counted once
	}
}

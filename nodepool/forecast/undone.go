package forecast

import (
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// undoneBackoffMin is how long nodes stay after a removal to save money needed a new node for the pods that it
	// evicted, doubling.
	undoneBackoffMin = 10 * time.Minute
	// replacedWithin is how long after a scale-down has ended the pods that take the place of evicted ones may
	// be found to fit nowhere.
	replacedWithin = 30 * time.Second
)

// OwnersOn returns the controllers of the pods on nodes, as far as a record can have them.
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

func noteUndone(r *state.Record, owner string, now time.Time) {
	at := slices.IndexFunc(r.Undone, func(u state.Undone) bool { return u.Owner == owner })
	if at < 0 {
		if len(r.Undone) >= state.MaxOwners {
			return
		}
		at = len(r.Undone)
		r.Undone = append(r.Undone, state.Undone{Owner: owner})
	}
	u := &r.Undone[at]
	if u.Until.After(now) {
		return // another pod of the same scale-down
	}
	wait := undoneBackoffMin
	for range u.Times {
		wait = min(2*wait, state.UndoneBackoffMax)
	}
	u.Times, u.Until = u.Times+1, now.Add(wait)
}

// NoteUndone writes down whether a launch that begins now is for pods that the last scale-down has
// evicted. The room that it counted on was there, and the scheduler put other pods into it.
func (f *Forecast) NoteUndone(r *state.Record, now time.Time) {
	s := r.Saved
	if s == nil {
		return
	}
	asking := setOf(f.new)
	undone := false
	for _, p := range f.asking {
		owner := ownerOf(p.Pod)
		replaces := !p.Since.Before(s.Began) && (s.Ended.IsZero() || p.Since.Before(s.Ended.Add(replacedWithin)))
		if asking[nameOf(p).String()] && replaces && slices.Contains(s.Owners, owner) {
			noteUndone(r, owner, now)
			undone = true
		}
	}
	if undone {
		r.Saved = nil // it is counted once
	}
}

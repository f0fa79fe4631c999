package forecast

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/plan"
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
			out = append(out, digest(string(p.Owner)))
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

// keptHomes are homes that also say which nodes would only be followed by new ones.
type keptHomes struct {
	plan.Homes
	o     *observe.Observation
	until map[string]time.Time // by controller
}

// keepUndone has nodes stay whose removal to save money would only be undone.
func keepUndone(h plan.Homes, o *observe.Observation) plan.Homes {
	until := map[string]time.Time{}
	for _, u := range o.Record.Undone {
		if u.Until.After(o.At) {
			until[u.Owner] = u.Until
		}
	}
	if len(until) == 0 {
		return h
	}
	return keptHomes{h, o, until}
}

// Without implements [plan.Homes]. Pods may wait where a node must go, which is not to save money.
func (h keptHomes) Without(nodes []string, mayWait bool, added ...fleet.Placement) string {
	if why := h.Homes.Without(nodes, mayWait, added...); why != "" || mayWait {
		return why
	}
	for _, name := range nodes {
		n := h.o.NodeNamed(name)
		if n == nil {
			continue
		}
		for _, owner := range ownersOf(n) {
			if until, kept := h.until[owner]; kept {
				return fmt.Sprintf("a new node was launched for pods like some of node %s when they were evicted last: "+
					"that is tried again after %s", name, until.UTC().Format(time.RFC3339))
			}
		}
	}
	return ""
}

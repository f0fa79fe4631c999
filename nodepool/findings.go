package nodepool

import (
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
)

// findings holds the findings of the last decision, so that each is reported once while it holds.
type findings map[plan.Finding]bool

// news returns the events of findings that the last decision did not have.
func (f findings) news(found []plan.Finding) []journal.Event {
	var out []journal.Event
	now := map[plan.Finding]bool{}
	for _, one := range found {
		key := plan.Finding{Kind: one.Kind, Node: one.Node, InstanceID: one.InstanceID}
		if now[key] = true; !f[key] {
			out = append(out, journal.Event{Reason: journal.EventReason(one.Kind), Warning: true, Node: one.Node,
				Instance: one.InstanceID, Message: one.Message})
		}
	}
	clear(f)
	for key := range now {
		f[key] = true
	}
	return out
}

package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
)

// reclaimedFor is the time for which a placement is not launched again after the cloud reclaimed an
// instance of it: the replacement would be reclaimed next.
const reclaimedFor = 3 * time.Minute

// messages is the result of the messages of the cloud.
type messages struct {
	interruptions []Interruption
	advice        []Advice
	cooling       []fleet.Cooling
	deferred      []string // instances whose messages must wait, because their owner is not known yet
}

// interpret classifies the messages of the cloud.
func interpret(c *census) (m messages) {
	for _, message := range c.Messages {
		i := c.instances[message.InstanceID]
		switch {
		case i == nil:
			if message.Interruption && c.Unlistable {
				m.deferred = append(m.deferred, message.InstanceID)
			}
		case i.Node.ControlPlane:
		case message.Interruption:
			m.interrupt(c, i, message.Deadline)
		case i.Node.Name != "" && i.Ambiguous == "":
			m.advice = append(m.advice, Advice{i.ID, i.Node.Name})
		}
	}
	return m
}

func (m *messages) interrupt(c *census, i *Instance, deadline time.Time) {
	known := slices.ContainsFunc(m.interruptions, func(x Interruption) bool { return x.InstanceID == i.ID })
	switch {
	case i.Gone || i.Listed && i.ends(): // nothing is left to drain
	case !i.Listed && i.Node.Name == "":
		// Another process may have terminated it before this one led, or it was just launched and will be
		// listed soon.
		m.deferred = append(m.deferred, i.ID)
	case known || c.Record.Interruption(i.ID) != nil || c.Record.Drained(i.ID): // it is about to go anyway
	default:
		m.add(c, i, deadline, c.Record.Leaves(i.ID))
	}
}

// add records an interruption. An instance that is being removed was not needed: the interruption
// just completes the scale-down.
func (m *messages) add(c *census, i *Instance, deadline time.Time, leaving bool) {
	if ahead := deadline.Sub(c.Now); ahead <= 0 || ahead > fleet.NoticeTime {
		deadline = c.Now.Add(fleet.NoticeTime)
	}
	if i.Market == fleet.Spot {
		m.cooling = append(m.cooling, fleet.Cooling{
			Zone: i.Zone, InstanceType: i.InstanceType, Market: i.Market, Until: c.Now.Add(reclaimedFor),
			Reason: "the cloud reclaims " + i.ID,
		})
	}
	m.interruptions = append(m.interruptions, Interruption{
		InstanceID: i.ID, ProviderID: i.ProviderID, Zone: i.Zone, Node: i.Node.Name, Deadline: deadline,
		ReplacementSettled: leaving,
		Message:            fmt.Sprintf("The cloud reclaims %s at %s", i.ID, deadline.UTC().Format(time.RFC3339)),
	})
}

// notices returns the interruptions that may need a replacement.
func (m *messages) notices() (out []notice) {
	for _, x := range m.interruptions {
		if !x.ReplacementSettled {
			out = append(out, notice{instance: x.InstanceID, deadline: x.Deadline})
		}
	}
	return out
}

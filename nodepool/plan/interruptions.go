package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
)

// NoticeTime is what an interruption leaves at most, and if its message does not say or says what cannot be: what EC2 gives
// Spot instances. A deadline that has passed was late, or is another's by a clock that is wrong; the drain has its time all
// the same, and the cloud does not wait for it. One further ahead is of a clock ahead of ours: to count on it would leave
// pods running when the instance goes.
const NoticeTime = 2 * time.Minute

// reclaimedFor is for how long what the cloud takes back is not launched again: the replacement would be the next to go.
const reclaimedFor = 3 * time.Minute

// Message is what the cloud reports about an instance without being asked.
type Message struct {
	InstanceID   string
	Interruption bool // the cloud takes it back; otherwise it advises to leave it
	Deadline     time.Time
}

// Interruption is an instance that the cloud takes back, to be written down before anything is done about it.
type Interruption struct {
	InstanceID, ProviderID string
	Zone, Node             string
	Deadline               time.Time
	Replaced               bool // nothing is to be launched in its place, as it was being removed anyway
	Message                string
}

// Advice is an instance that the cloud advises to leave.
type Advice struct{ InstanceID, Node string }

// heard is what messages come to.
type heard struct {
	interruptions []Interruption
	advice        []Advice
	cooling       []fleet.Cooling
	later         []string // instances whose messages must wait, as it cannot be told whose they are
}

// hear takes note of the messages of the cloud, and has the decision see them as if they had been in the journal already.
func (v *view) hear() (h heard) {
	for _, m := range v.Messages {
		i := v.seen[m.InstanceID]
		switch {
		case i == nil && m.Interruption && v.Unlistable:
			h.later = append(h.later, m.InstanceID)
		case i == nil || i.Node.ControlPlane:
		case !m.Interruption:
			if i.Node.Name != "" && i.Ambiguous == "" {
				h.advice = append(h.advice, Advice{i.ID, i.Node.Name})
			}
		case i.Gone || i.Listed && i.Leaving:
			// There is nothing left to be drained.
		case !i.Listed && i.Node.Name == "":
			// Another process may have ended it before this one led; or it has just been launched, and is listed soon.
			h.later = append(h.later, m.InstanceID)
		default:
			h.interrupt(v, i, m)
		}
	}
	for _, x := range h.interruptions {
		if !x.Replaced {
			v.Notices = append(slices.Clip(v.Notices), Notice{InstanceID: x.InstanceID, Deadline: x.Deadline})
		}
	}
	v.State.Cooling = append(slices.Clip(v.State.Cooling), h.cooling...)
	return h
}

func (h *heard) interrupt(v *view, i *Instance, m Message) {
	known := slices.ContainsFunc(h.interruptions, func(x Interruption) bool { return x.InstanceID == i.ID })
	removal := v.removals[i.ID]
	if known || removal != nil && (removal.Interrupted || removal.Drained) {
		return // it is known already, or is about to go anyway
	}
	x := Interruption{
		InstanceID: i.ID, ProviderID: i.ProviderID, Zone: i.Zone, Node: i.Node.Name, Deadline: m.Deadline,
		Replaced: removal != nil, // nobody desired it: the interruption goes on where the scale-down was
	}
	if ahead := x.Deadline.Sub(v.Now); ahead <= 0 || ahead > NoticeTime {
		x.Deadline = v.Now.Add(NoticeTime)
	}
	x.Message = fmt.Sprintf("The cloud reclaims %s at %s", i.ID, x.Deadline.UTC().Format(time.RFC3339))
	if i.Market == fleet.Spot {
		h.cooling = append(h.cooling, fleet.Cooling{
			Zone: i.Zone, InstanceType: i.InstanceType, Market: i.Market, Until: v.Now.Add(reclaimedFor), Reason: "the cloud reclaims " + i.ID,
		})
	}
	h.interruptions = append(h.interruptions, x)
}

// Removal is an instance that is being removed.
type Removal struct {
	InstanceID  string
	Interrupted bool // by the cloud
	Repair      bool // as its Node is unhealthy
	Drained     bool // its Node is empty
}

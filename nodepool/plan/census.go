package plan

import (
	"fmt"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
)

// census is a [Snapshot] with its workers counted: which stay, which leave and what is open about
// each instance. It is never changed; [census.with] makes another one.
type census struct {
	Snapshot
	instances    map[string]*Instance           // by id
	removals     map[string]*Removal            // open ones, by instance
	terminations map[string]*PendingTermination // by instance
	noticed      map[string]bool                // instances with a notice; true = for an unhealthy Node
	staying      []Worker                       // that count and have no notice
	taken        int                            // workers that have one, because of the cloud or of a repair
	sick         int                            // of those, the ones being repaired
	ready        int                            // of the staying ones
	unready      int                            // of the staying ones, neither ready nor cordoned
	unknown      []string                       // signals and pods that every removal needs to know and that are not known
}

func newCensus(s Snapshot) *census {
	c := &census{
		Snapshot: s, instances: map[string]*Instance{}, removals: map[string]*Removal{},
		terminations: map[string]*PendingTermination{}, noticed: make(map[string]bool, len(s.Notices)),
		unknown: unknown(s),
	}
	c.index()
	for _, w := range s.Workers {
		sick, noticed := c.noticed[w.InstanceID]
		switch {
		case w.Failed:
		case noticed:
			c.taken++
			if sick {
				c.sick++
			}
		case w.Counts():
			c.staying = append(c.staying, w)
			if w.Ready {
				c.ready++
			} else if !w.Cordoned {
				c.unready++
			}
		}
	}
	return c
}

func (c *census) index() {
	for i := range c.Instances {
		if in := &c.Instances[i]; in.ID != "" {
			c.instances[in.ID] = in
		}
	}
	for i := range c.State.Removals {
		c.removals[c.State.Removals[i].InstanceID] = &c.State.Removals[i]
	}
	for i := range c.State.PendingTerminations {
		c.terminations[c.State.PendingTerminations[i].InstanceID] = &c.State.PendingTerminations[i]
	}
	for _, n := range c.Notices {
		c.noticed[n.InstanceID] = c.noticed[n.InstanceID] || n.Unhealthy
	}
}

// with returns the census of the snapshot once further notices and coolings are part of it.
func (c *census) with(notices []Notice, cooling []fleet.Cooling) *census {
	if len(notices)+len(cooling) == 0 {
		return c
	}
	s := c.Snapshot
	s.Notices = slices.Concat(s.Notices, notices)
	s.State.Cooling = slices.Concat(s.State.Cooling, cooling)
	return newCensus(s)
}

// unknown names the signals and pods that every removal needs to know and that are not known.
func unknown(s Snapshot) []string {
	var out []string
	if !s.Pending.Known {
		out = append(out, "unschedulable pods")
	}
	for _, signal := range s.Signals {
		switch {
		case !signal.Known:
			out = append(out, fmt.Sprintf("%s (%s)", signal.Name, signal.Err))
		case signal.Silent != "":
			out = append(out, fmt.Sprintf("%s of all workers (%s)", signal.Name, signal.Silent))
		}
	}
	return out
}

// isTaken reports whether a worker has a notice.
func (c *census) isTaken(w Worker) bool {
	_, noticed := c.noticed[w.InstanceID]
	return noticed
}

// isRepaired reports whether the removal of an unhealthy worker is open.
func (c *census) isRepaired(w Worker) bool {
	removal := c.removals[w.InstanceID]
	return removal != nil && removal.Repair
}

// backsOff reports whether a drain of a worker, or its termination, has failed recently.
func (c *census) backsOff(w Worker) bool { return c.State.DrainBackoff[w.InstanceID].After(c.Now) }

// distrusted reports whether too many workers are unready for observations to be trusted.
func (c *census) distrusted() bool { return c.Pool.Distrusts(c.unready, len(c.staying)) }

// isOpen reports whether the journal says what becomes of an instance.
func (c *census) isOpen(i *Instance) bool {
	return c.State.ActionID != "" && c.State.ActionID == i.Action || c.removals[i.ID] != nil || c.awaitsTermination(i.ID)
}

// awaitsTermination reports whether an instance is to be terminated.
func (c *census) awaitsTermination(id string) bool { return id != "" && c.terminations[id] != nil }

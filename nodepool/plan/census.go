package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"
)

// census is a [Snapshot] with its workers counted: which stay, which leave and what is open about
// each instance. It is never changed; [census.with] makes another one.
type census struct {
	Snapshot
	instances map[string]*Instance // by id
	workers   []*Instance
	notices   []notice
	noticed   map[string]bool   // instances with a notice; true = for an unhealthy Node
	staying   []*Instance       // that count and have no notice
	taken     int               // workers that have one, because of the cloud or of a repair
	sick      int               // of those, the ones being repaired
	ready     int               // of the staying ones
	unready   int               // of the staying ones, neither ready nor cordoned
	unknown   []string          // signals and pods that every removal needs to know and that are not known
	plannedAt []fleet.Placement // nodes that an open scale-up has yet to launch, without the lost ones
	lost      []state.Slot      // nodes of an open scale-up that cannot be launched as planned
	room      int               // further nodes that an open scale-up takes
}

// notice says that the cloud takes an instance back, or that the pool removes it because its Node
// is unhealthy. It holds until a replacement has been decided on.
type notice struct {
	instance  string
	deadline  time.Time
	unhealthy bool
}

func newCensus(s Snapshot, more ...notice) *census {
	c := &census{
		Snapshot: s, instances: map[string]*Instance{}, notices: append(noticesOf(s.Record), more...),
		noticed: map[string]bool{}, unknown: unknown(s),
		plannedAt: s.Record.PlannedAt(), lost: s.Record.Lost(), room: roomOf(s),
	}
	for i := range c.Instances {
		if in := &c.Instances[i]; in.ID != "" {
			c.instances[in.ID] = in
		}
	}
	for _, n := range c.notices {
		c.noticed[n.instance] = c.noticed[n.instance] || n.unhealthy
	}
	for w := range Workers(c.Instances) {
		c.add(w)
	}
	return c
}

// with returns the census once further notices and coolings are part of it.
func (c *census) with(notices []notice, cooling []fleet.Cooling) *census {
	if len(notices)+len(cooling) == 0 {
		return c
	}
	s := c.Snapshot
	s.Record.Cooling = slices.Concat(s.Record.Cooling, cooling)
	return newCensus(s, slices.Concat(c.notices[len(noticesOf(s.Record)):], notices)...)
}

// add counts a worker.
func (c *census) add(w *Instance) {
	c.workers = append(c.workers, w)
	sick, noticed := c.noticed[w.ID]
	switch {
	case w.Failed:
	case noticed:
		c.taken++
		if sick {
			c.sick++
		}
	case w.Counts():
		c.staying = append(c.staying, w)
		if w.Ready() {
			c.ready++
		} else if !w.works() {
			c.unready++
		}
	}
}

// noticesOf returns the interruptions and repairs without a replacement.
func noticesOf(r state.Record) (out []notice) {
	for _, x := range r.Interruptions {
		if !x.Replaced {
			out = append(out, notice{instance: x.InstanceID, deadline: x.Deadline})
		}
	}
	for _, x := range r.Repairs {
		if !x.Replaced {
			out = append(out, notice{instance: x.InstanceID, deadline: x.Since.Add(fleet.NoticeTime), unhealthy: true})
		}
	}
	return out
}

// roomOf returns how many more nodes an open scale-up takes: up to a batch, and while those have at
// least half of the time to join.
func roomOf(s Snapshot) int {
	a := s.Record.Action
	if a == nil || a.Kind != state.ActionUp || s.Now.Sub(a.Started) > s.Pool.Join.Timeout/2 {
		return 0
	}
	return max(0, s.Pool.Batch()-len(a.Slots))
}

// planned returns how many nodes of an open scale-up are not launched yet, the lost ones included.
func (c *census) planned() int { return len(c.plannedAt) + len(c.lost) }

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
func (c *census) isTaken(w *Instance) bool {
	_, noticed := c.noticed[w.ID]
	return noticed
}

// backsOff reports whether a drain of a worker, or its termination, has failed recently.
func (c *census) backsOff(w *Instance) bool { return c.Record.DrainBackoff[w.ID].After(c.Now) }

// distrusted reports whether too many workers are unready for observations to be trusted.
func (c *census) distrusted() bool { return c.Pool.Distrusts(c.unready, len(c.staying)) }

// isOpen reports whether the journal says what becomes of an instance.
func (c *census) isOpen(i *Instance) bool {
	a := c.Record.Action
	return a != nil && a.ID == i.Action || c.Record.Leaves(i.ID) || c.Record.PendingTermination(i.ID) != nil
}

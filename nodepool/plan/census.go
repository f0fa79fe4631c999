package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"
)

// census is a [Snapshot] whose workers have been counted and classified. It is immutable;
// [census.with] returns a new one.
type census struct {
	Snapshot
	instances   map[string]*Instance // by id
	workers     []*Instance
	notices     []notice
	noticed     map[string]bool   // instances with a notice; true = for an unhealthy Node
	staying     []*Instance       // that count and have no notice
	withNotice  int               // workers with a notice, from the cloud or for a repair
	underRepair int               // of those, the ones under repair
	ready       int               // of the staying ones
	unready     int               // of the staying ones, neither ready nor cordoned
	unknown     []string          // signals and pods that removals depend on and that are not known
	plannedAt   []fleet.Placement // nodes that an open scale-up has not launched yet, without the lost ones
	lost        []state.Slot      // nodes of an open scale-up that cannot be launched as planned
	room        int               // how many more nodes an open scale-up can take
}

// notice reports that the cloud reclaims an instance, or that the pool removes it because its Node
// is unhealthy. It is kept until its replacement has been decided.
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

// with returns a census with further notices and coolings.
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
	underRepair, noticed := c.noticed[w.ID]
	switch {
	case w.Failed:
	case noticed:
		c.withNotice++
		if underRepair {
			c.underRepair++
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

// noticesOf returns the interruptions and repairs that have no replacement yet.
func noticesOf(r state.Record) (out []notice) {
	for _, x := range r.Interruptions {
		if !x.ReplacementSettled {
			out = append(out, notice{instance: x.InstanceID, deadline: x.Deadline})
		}
	}
	for _, x := range r.Repairs {
		if !x.ReplacementSettled {
			out = append(out, notice{instance: x.InstanceID, deadline: x.Since.Add(fleet.NoticeTime), unhealthy: true})
		}
	}
	return out
}

// roomOf returns the number of nodes that can still be added to an open scale-up: up to a batch, as
// long as they have at least half of the time to join.
func roomOf(s Snapshot) int {
	a := s.Record.Action
	if a == nil || a.Kind != state.ActionUp || s.Now.Sub(a.Started) > s.Pool.Join.Timeout/2 {
		return 0
	}
	return max(0, s.Pool.Batch()-len(a.Slots))
}

// planned returns the number of nodes that an open scale-up has not launched yet, including the
// lost ones.
func (c *census) planned() int { return len(c.plannedAt) + len(c.lost) }

// unknown returns the signals and pods that removals depend on and that are not known.
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
			out = append(out, fmt.Sprintf("%s of some workers (%s)", signal.Name, signal.Silent))
		}
	}
	return out
}

// hasNotice reports whether a worker has a notice.
func (c *census) hasNotice(w *Instance) bool {
	_, noticed := c.noticed[w.ID]
	return noticed
}

// backsOff reports whether a drain or termination of a worker failed recently.
func (c *census) backsOff(w *Instance) bool { return c.Record.DrainBackoff[w.ID].After(c.Now) }

// distrusted reports whether so many workers are unready that observations cannot be trusted.
func (c *census) distrusted() bool { return c.Pool.Distrusts(c.unready, len(c.staying)) }

// isOpen reports whether the journal already covers an instance: its launch, removal or termination
// is open.
func (c *census) isOpen(i *Instance) bool {
	a := c.Record.Action
	return a != nil && a.ID == i.Action || c.Record.Leaves(i.ID) || c.Record.PendingTermination(i.ID) != nil
}

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
)

const (
	// UnhealthyShare is the largest share of unhealthy nodes, in percent, with which any is repaired.
	// If more are unhealthy at once, something else such as the network or the control plane is
	// broken, and new nodes would not help.
	UnhealthyShare = 20
	// RepairShare is the largest share of the nodes, in percent, that is repaired at once.
	RepairShare = 10
)

// repairs is the choice of unhealthy workers to be replaced.
type repairs struct {
	begun   []NodeRepair
	notices []notice // of those that count
	held    string   // why none is repaired, "" if nothing blocks it
}

// repair chooses the unhealthy workers to be replaced. It ignores disruption budgets and blocks of
// removals: as far as is known, nothing works on these nodes.
func repair(c *census) (r repairs) {
	if c.WorkersErr != "" || c.Pool.Deleting {
		return r
	}
	due, h := health(c)
	if len(due)+h.underway == 0 {
		return r
	}
	if r.held = repairHeld(c, h); r.held != "" {
		return r
	}
	slices.SortFunc(due, func(a, b *Instance) int {
		return cmp.Or(compareBool(!a.works(), !b.works()), a.Unhealthy.Due().Compare(b.Unhealthy.Due()),
			cmp.Compare(a.ID, b.ID))
	})
	for _, w := range due[:min(len(due), max(0, percent(RepairShare, h.nodes)-h.underway))] {
		r.begin(c, w)
	}
	return r
}

// nodeHealth counts the nodes of a pool.
type nodeHealth struct {
	nodes     int // without those launched to replace unhealthy ones
	unhealthy int
	underway  int // being repaired
}

// health counts the nodes, and returns the unhealthy workers that are due for repair.
func health(c *census) (due []*Instance, h nodeHealth) {
	for _, w := range c.workers {
		if w.Node.Name == "" || w.Ended || w.Failed && !w.Broken {
			continue
		}
		h.nodes++
		if c.Record.Repair(w.ID) != nil {
			h.underway++
		}
		if !w.Unhealthy.Holds() {
			continue
		}
		h.unhealthy++
		if repairable(c, w) {
			due = append(due, w)
		}
	}
	h.nodes -= replacements(c)
	return due, h
}

// begin adds a worker. One that counts is replaced as if the cloud reclaimed it.
func (r *repairs) begin(c *census, w *Instance) {
	if !w.Failed {
		r.notices = append(r.notices, notice{instance: w.ID, deadline: c.Now.Add(fleet.NoticeTime), unhealthy: true})
	}
	r.begun = append(r.begun, NodeRepair{
		InstanceID: w.ID, ProviderID: w.ProviderID, Zone: w.Zone, Node: w.Node.Name,
		ReplacementSettled: w.Failed,
		Message: fmt.Sprintf("Node %s has been %s for %s: it is drained, and %s terminated",
			w.Node.Name, w.Unhealthy.Condition, c.Now.Sub(w.Unhealthy.Since).Round(time.Second), w.ID),
	})
}

// replacements returns the number of nodes that were launched to replace unhealthy ones that still
// exist. They must not make the share of unhealthy nodes smaller.
func replacements(c *census) int {
	broken := 0
	var first time.Time
	for _, w := range c.workers {
		if (w.Broken || c.Record.Repair(w.ID) != nil) && w.Unhealthy.Holds() {
			broken++
			if since := w.Unhealthy.Since; first.IsZero() || since.Before(first) {
				first = since
			}
		}
	}
	launched := 0
	for _, w := range c.workers {
		if w.Node.Name != "" && w.Counts() && w.Launched.After(first) {
			launched++
		}
	}
	return min(broken, launched)
}

// repairable reports whether a worker has been unhealthy for long enough, and can be removed.
func repairable(c *census, w *Instance) bool {
	return !w.Leaving && w.ID != "" && w.Listed && !w.Node.ControlPlane && !c.Record.Leaves(w.ID) &&
		c.Record.PendingTermination(w.ID) == nil && !c.hasNotice(w) &&
		!c.Now.Before(w.Unhealthy.Due()) && !c.backsOff(w)
}

// repairHeld returns why no worker is repaired, "" if nothing blocks it.
func repairHeld(c *census, h nodeHealth) string {
	most := percent(UnhealthyShare, h.nodes)
	switch doubt := Doubt(c.Pool, c.Instances, c.Record.PendingTerminations); {
	case c.Pool.Repair.Disabled:
		return "disruption.repair.disabled is true"
	case doubt != "":
		return doubt
	case c.distrusted():
		return fmt.Sprintf("%d of %s are unready: observations cannot be trusted",
			c.unready, count(len(c.staying), "worker"))
	case h.unhealthy > most:
		return fmt.Sprintf("%d of %s are unhealthy, and while more than %d are (%d%%) the cause is assumed to be elsewhere",
			h.unhealthy, count(h.nodes, "node"), most, UnhealthyShare)
	}
	return ""
}

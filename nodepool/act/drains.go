package act

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// DetachWithin is the longest wait for the volumes of a node to be detached after its pods have
// gone. The attach-detach controller takes seconds; volumes of DaemonSets are never detached.
const DetachWithin = 2 * time.Minute

// drains is shared by the removals of one cycle.
type drains struct {
	c               *cycle
	grace, maxGrace time.Duration       // shortest and longest wait for pods that are being bound to a node
	budgeted        bool                // a budget blocks the eviction of pods of some node
	attached        map[string][]string // volumes by node; nil = not read yet
}

// arriving reports whether pods may still be binding to a node that was tainted some time ago. Pods
// that come later than the longest wait are found by the last check before the instance is
// terminated.
func (d *drains) arriving(ctx context.Context, tainted time.Duration) (bool, error) {
	switch {
	case tainted < d.grace:
		return true, nil
	case tainted >= d.maxGrace:
		return false, nil
	}
	return d.c.nodes.arriving(ctx)
}

// whyUnmovable returns why the pods of a target could not run on other nodes, "" if they could, or if the
// pool is being deleted. They cannot run on other nodes that are being removed, and the pods of
// those keep the room that they will need.
func (d *drains) whyUnmovable(node string) string {
	if d.c.snapshot.Simulator == nil || node == "" || d.c.seen.Spec.Plan.Deleting {
		return ""
	}
	leaving := []string{node}
	mayWait := true
	if a := d.c.record.Action; a != nil {
		mayWait = plan.MustGo(a.Reason)
		for _, r := range a.Targets {
			if r.Node != node && (r.State == state.RemovalTainted || r.State == state.RemovalDraining) {
				leaving = append(leaving, r.Node)
			}
		}
	}
	slices.Sort(leaving) // so that equal questions share one simulation
	return d.c.snapshot.Simulator.Without(leaving, mayWait)
}

// detached reports whether no volume is attached any more to a drained node, or the wait for them
// is over. Volumes of a terminated instance are force-detached only six minutes later, and their
// pods would wait as long.
func (d *drains) detached(ctx context.Context, r *state.Removal, urgent bool) (bool, error) {
	until := r.Since.Add(DetachWithin)
	if urgent && r.Deadline.Before(until) {
		until = r.Deadline
	}
	if r.Node == "" || !d.c.now().Before(until) {
		return true, nil
	}
	if d.attached == nil {
		var err error
		if d.attached, err = d.c.nodes.attached(ctx); err != nil {
			return false, err
		}
	}
	volumes := d.attached[r.Node]
	if len(volumes) == 0 {
		return true, nil
	}
	slices.Sort(volumes)
	if why := fmt.Sprintf("%d volumes are attached, such as %s", len(volumes), volumes[0]); r.Error != why {
		r.Error = why
		d.c.changed()
	}
	return false, nil
}

package act

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// DetachWithin is how long after its pods have gone the volumes of a node are waited for. The attach-detach controller
// takes seconds; volumes of DaemonSets are not detached at all.
const DetachWithin = 2 * time.Minute

// drains is what the removals of one cycle share.
type drains struct {
	c               *cycle
	grace, maxGrace time.Duration       // of pods on their way to a node: at least, and at most
	budgeted        bool                // a budget holds pods of a node that is drained
	attached        map[string][]string // volumes by node; nil = not asked for
}

// arriving reports whether pods may still be on their way to a node that has been tainted for a
// while. What comes later than is waited for is seen by the last look before the instance is
// terminated, if it comes before that.
func (d *drains) arriving(ctx context.Context, tainted time.Duration) (bool, error) {
	switch {
	case tainted < d.grace:
		return true, nil
	case tainted >= d.maxGrace:
		return false, nil
	}
	return d.c.nodes.arriving(ctx)
}

// pinned returns why the pods of a target could not run on other nodes, "" if they could, or if the pool is being
// deleted. Other nodes that are being removed are no homes, and their pods keep the room that they will need.
func (d *drains) pinned(node string) string {
	if d.c.snapshot.Homes == nil || node == "" || d.c.seen.Spec.Plan.Deleting {
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
	slices.Sort(leaving) // for all of them it is asked once
	return d.c.snapshot.Homes.Without(leaving, mayWait)
}

// detached reports whether no volume is attached any more to the node of a drained instance, or
// none is waited for any longer. A volume that an instance ends with is detached by force, six
// minutes later, and its pod waits for that long.
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

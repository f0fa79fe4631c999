package nodepool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

var errNotObserved = errors.New("the cluster has not been observed")

// Deletion is what is left of a pool that is being deleted.
type Deletion struct {
	Err       string   // why that is not known, "" if it is
	Nodes     int      // that are to be drained, or deleted after their instances
	Instances int      // that have no Node
	Held      []string // what holds some of them, such as "node-a: the pod shop/cart is annotated …"
}

// deletion returns what is left of the pool, nil if it is not being deleted.
func (t *tick) deletion() *Deletion {
	if !t.spec.Plan.Deleting {
		return nil
	}
	d := &Deletion{}
	if !t.known() {
		d.Err = cmp.Or(errors.Join(t.listErr, t.clusterErr), errNotObserved).Error()
		return d
	}
	nodes, instances := t.left()
	d.Nodes, d.Instances = len(nodes), len(instances)
	for _, r := range t.decision.Refused {
		d.Held = append(d.Held, r.Worker+": "+r.Reason)
	}
	if a := t.record.Action; a != nil {
		for _, r := range a.Targets {
			if r.Error != "" && !done(r) {
				d.Held = append(d.Held, cmp.Or(r.Node, r.InstanceID)+": "+r.Error)
			}
		}
	}
	for _, id := range instances {
		if s := t.sightings[id]; s != nil && s.instance.Action == "" && s.instance.State != provider.Leaving {
			d.Held = append(d.Held, id+": it has no Node, and Foresail did not launch it: terminate it, or remove its tags")
		}
	}
	slices.Sort(d.Held)
	d.Held = slices.Compact(d.Held)
	return d
}

// left returns what there is of the pool: Nodes, and the instances that have none. An instance that is not listed any more
// counts until it is known to have gone, and its Node until it is deleted. The control plane is never a part of it.
func (t *tick) left() (nodes, instances []string) {
	for key, s := range inOrder(t.sightings) {
		switch node := t.node(s.instance); {
		case node != nil && controlPlane(node.Object):
		case node != nil:
			nodes = append(nodes, node.Object.Name)
		case !t.gone(key):
			instances = append(instances, key)
		}
	}
	return nodes, instances
}

// letGo lets the object of a pool go that is being deleted, once nothing of it has been left for the grace: the cloud may be
// late to list an instance. The journal is emptied before that, which also proves that the lease is held still; where it
// outlives the object, a new pool of the name begins anew.
func (t *tick) letGo(ctx context.Context) error {
	if !t.isEmpty() {
		t.emptySince = time.Time{}
		return nil
	}
	if t.emptySince.IsZero() {
		t.emptySince = t.now
	}
	if !t.spec.Plan.Deleting || t.act.letGo == nil || t.now.Sub(t.emptySince) < t.options.VanishGrace {
		return nil
	}
	t.record = state.Record{Version: t.record.Version}
	if err := t.save(ctx); err != nil {
		return err
	}
	if err := t.act.finish(ctx); err != nil {
		return fmt.Errorf("let the WorkerPool go: %w", err)
	}
	t.event(Event{Reason: EventDeleted, Message: "Nothing of the pool is left: the WorkerPool is let go"})
	return nil
}

// isEmpty tells whether nothing of the pool is left, nor can come. In a dry run an open action launches nothing.
func (t *tick) isEmpty() bool {
	if !t.known() || t.record.Action != nil && !t.spec.DryRun {
		return false
	}
	nodes, instances := t.left()
	return len(nodes)+len(instances) == 0
}

// endUp ends the scale-up of a pool that is being deleted: what is not launched yet never is, and what has not joined is
// condemned. A launch whose answer was lost is found by its tags.
func (t *tick) endUp(ctx context.Context) error {
	a := t.record.Action
	launched := 0
	for _, s := range a.Slots {
		if s.State != state.SlotLaunched {
			continue
		}
		launched++
		if t.condemned(s.InstanceID) == nil {
			t.record.Condemned = append(t.record.Condemned, state.Condemned{InstanceID: s.InstanceID, Reason: condemnedDeleted, Since: t.now, Due: t.now})
		}
	}
	t.event(Event{Reason: EventScaleUpAborted, Action: a.ID, Message: fmt.Sprintf("The scale-up is given up, as the WorkerPool is being deleted; %d instances have not joined", launched)})
	t.record.Action = nil
	return t.save(ctx)
}

// taintAll taints every node of a deletion before the first is drained, so that what is evicted from one does not come to
// the next.
func (t *tick) taintAll(ctx context.Context) error {
	for i := range t.record.Action.Targets {
		r := t.record.Action.Targets[i]
		if r.State != state.RemovalPlanned {
			continue
		}
		if t.waits(r) || t.mustEnd() {
			return nil
		}
		if err := t.carryOn(ctx, t.removal(i).step(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// deletes tells whether an action removes the nodes of a pool that is being deleted.
func deletes(a *state.Action) bool { return a.Reason == plan.PoolDeleted }

// queued tells whether the turn of a target has not come. That of a deletion is tainted by then.
func queued(a *state.Action, r state.Removal) bool {
	return r.State == state.RemovalPlanned || deletes(a) && r.State == state.RemovalTainted
}

// age is for how long a scale-down has been open; that of a deletion, which has more targets, since the last of them was done.
func (t *tick) age(a *state.Action) time.Duration {
	since := a.Started
	if deletes(a) {
		for _, r := range a.Targets {
			if done(r) {
				since = latest(since, r.Since)
			}
		}
	}
	return t.options.Now().Sub(since)
}

// stillWorks tells whether a worker is the target of a deletion whose turn has not come, or that is being drained.
func (t *tick) stillWorks(w plan.Worker) bool {
	if t.record.Action == nil || !deletes(t.record.Action) || w.Failed {
		return false
	}
	r := t.target(w.InstanceID)
	return r != nil && (r.State == state.RemovalPlanned || r.State == state.RemovalTainted || r.State == state.RemovalDraining)
}

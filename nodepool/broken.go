package nodepool

import (
	"context"
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
)

// brokenFor is for how long the Node of a worker has not been Ready, once that is longer than a join may take; 0 until
// then. Nothing here ends such a worker: its pods may run, and whether they do cannot be known.
func (t *tick) brokenFor(w plan.Worker) time.Duration {
	n, s := t.nodeNamed(w.Node), t.sightings[w.InstanceID]
	if n == nil || n.Ready || s == nil || !w.Counts() || t.record.Action != nil && s.instance.Action == t.record.Action.ID {
		return 0
	}
	if unready := t.now.Sub(s.unready()); unready > t.spec.Join.Timeout+t.options.VanishGrace {
		return unready
	}
	return 0
}

// leaveOut has broken workers not count, so that others are launched in their place: no more than could be a few failures
// that have nothing to do with each other, and none while what is seen is not to be trusted. So what is paid for stays
// bounded, as well. Of a pool that is being deleted they go like all others.
func (t *tick) leaveOut(workers []plan.Worker) {
	if t.spec.Plan.Deleting || !t.known() || t.doubt() != nil {
		return
	}
	left := t.spec.Plan.DistrustCount
	for i := range workers {
		if w := &workers[i]; left > 0 && t.brokenFor(*w) > 0 {
			w.Failed, w.Broken = true, true
			left--
		}
	}
}

// reportUnlisted tells once of each worker that the cloud has not listed for the grace, though its Node is alive.
func (t *tick) reportUnlisted(context.Context) error {
	for _, s := range inOrder(t.sightings) {
		missed := t.now.Sub(s.missing)
		n := t.node(s.instance)
		switch {
		case s.missing.IsZero():
			s.unlisted = false
		case n != nil && s.alive && !s.ended && s.instance.State != provider.Leaving && missed >= t.options.VanishGrace && !s.unlisted:
			s.unlisted = true
			t.event(Event{
				Reason: EventUnlisted, Warning: true, Node: n.Object.Name, Instance: s.instance.ID,
				Message: fmt.Sprintf("The cloud has not listed the instance of node %s for %s, and the node is Ready: it counts, and is not removed; look whether the instance has lost its tags",
					n.Object.Name, missed.Round(time.Second)),
			})
		}
	}
	return nil
}

// reportDriftUnknown tells once that it is not known which instances are outdated. It is no error of the tick: errors slow
// down what is open.
func (t *tick) reportDriftUnknown(context.Context) error {
	if t.instances == nil { // they could not be listed
		return nil
	}
	why := ""
	for _, i := range t.instances {
		why = max(why, i.OutdatedErr)
	}
	if why != "" && !t.driftUnknown {
		t.event(Event{Reason: EventDriftUnknown, Warning: true, Message: "It is not known which instances are outdated: " + why})
	}
	t.driftUnknown = why != ""
	return nil
}

// reportBroken tells once of each worker that is broken, as nobody but people can mend it.
func (t *tick) reportBroken(context.Context) error {
	if t.spec.Plan.Deleting {
		return nil
	}
	for _, w := range t.snapshot.Workers {
		s := t.sightings[w.InstanceID]
		counts := w
		counts.Failed = false
		unready := t.brokenFor(counts)
		if unready == 0 || s.broken || t.condemned(w.InstanceID) != nil {
			continue
		}
		s.broken = true
		instead := "another may take its place"
		if !w.Failed {
			instead = "none takes its place, as there are several"
		}
		t.event(Event{
			Reason: EventBroken, Warning: true, Node: w.Node, Instance: w.InstanceID,
			Message: fmt.Sprintf("Node %s has not been Ready for %s, and %s: delete the Node or terminate %s if it is lost",
				w.Node, unready.Round(time.Second), instead, w.InstanceID),
		})
	}
	return nil
}

package report

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/state"
)

// tracer makes a trace of each action of a pool when it has ended, from the journal as cycles report it: a span for the action, and
// one for each step of each of its nodes. A process that takes over goes on with what the journal has, and lacks the steps before.
type tracer struct {
	tracer trace.Tracer
	open   map[string]*traced // by what it is of
}

// traced is an action that has not ended.
type traced struct {
	name  string
	began time.Time
	about []attribute.KeyValue
	nodes map[string]*node
}

// node is one that an action launches or removes.
type node struct {
	steps    []step // the last one has not ended
	about    []attribute.KeyValue
	instance string
	err      string
}

type step struct {
	state      string // "" after the last one
	name       string
	began, end time.Time
}

// Names of the steps that lead from the states.
var (
	launchSteps = map[state.SlotState]string{state.SlotPlanned: "Launch", state.SlotLaunched: "Join"}
	removeSteps = map[state.RemovalState]string{
		state.RemovalPlanned: "Taint", state.RemovalTainted: "Cordon", state.RemovalDraining: "Drain", state.RemovalDrained: "Terminate",
		state.RemovalTerminated: "DeleteNode", state.RemovalRestoring: "Restore",
	}
)

func newTracer(of trace.TracerProvider) *tracer {
	return &tracer{of.Tracer("github.com/foresail/foresail/nodepool"), map[string]*traced{}}
}

// report takes a cycle of the process that leads, or of one that does not.
func (t *tracer) report(cycle nodepool.CycleReport) {
	if !cycle.Leading {
		clear(t.open) // the leader traces
		return
	}
	found := map[string]bool{}
	if a := cycle.Record.Action; a != nil {
		found[a.ID] = true
		t.action(cycle, a)
	}
	beside := func(kind string, removals []state.Removal) {
		for i := range removals {
			id := kind + " " + removals[i].InstanceID
			found[id] = true
			t.of(id, kind, since(removals[i].Since, cycle.At), cycle.Pool).removal(&removals[i], cycle.At)
		}
	}
	beside("Interruption", cycle.Record.Interruptions)
	beside("Repair", cycle.Record.Repairs)
	beside("Ending", cycle.Record.Endings)
	for _, id := range slices.Sorted(maps.Keys(t.open)) {
		if !found[id] {
			t.end(id, cycle)
		}
	}
}

func (t *tracer) of(id, name string, began time.Time, pool string) *traced {
	x := t.open[id]
	if x == nil {
		x = &traced{name: name, began: began, about: []attribute.KeyValue{attribute.String("foresail.workerpool", pool)}, nodes: map[string]*node{}}
		t.open[id] = x
	}
	return x
}

func (t *tracer) action(cycle nodepool.CycleReport, a *state.Action) {
	name := "ScaleUp"
	if a.Kind != state.ActionUp {
		name = "ScaleDown"
	}
	x := t.of(a.ID, name, a.Started, cycle.Pool)
	x.about = append(x.about[:1:1], attribute.String("foresail.action", a.ID), attribute.String("foresail.reason", string(a.Reason)), attribute.String("foresail.message", a.Message))
	for i := range a.Slots {
		x.slot(&a.Slots[i], since(a.Slots[i].Requested, a.Started, cycle.At), cycle.At)
	}
	for i := range a.Targets {
		x.removal(&a.Targets[i], cycle.At)
	}
}

// since is the first of some times that is known.
func since(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

func (x *traced) slot(s *state.Slot, began, now time.Time) {
	n := x.node(strconv.Itoa(s.Number))
	n.instance, n.err = s.InstanceID, s.Error
	n.about = []attribute.KeyValue{
		semconv.CloudAvailabilityZone(s.Zone), semconv.HostType(s.InstanceType), semconv.HostID(s.InstanceID), semconv.K8SNodeName(s.Node),
	}
	n.to(string(s.State), launchSteps[s.State], began, now)
}

func (x *traced) removal(r *state.Removal, now time.Time) {
	n := x.node(r.InstanceID)
	n.instance, n.err = r.InstanceID, r.Error
	n.about = []attribute.KeyValue{semconv.CloudAvailabilityZone(r.Zone), semconv.HostID(r.InstanceID), semconv.K8SNodeName(r.Node)}
	n.to(string(r.State), removeSteps[r.State], since(r.Since, now), now)
}

func (x *traced) node(key string) *node {
	n := x.nodes[key]
	if n == nil {
		n = &node{}
		x.nodes[key] = n
	}
	return n
}

// to begins the step of a state. The first one that is seen began earlier.
func (n *node) to(state, name string, began, now time.Time) {
	if k := len(n.steps) - 1; k >= 0 {
		if n.steps[k].state == state {
			return
		}
		n.steps[k].end = now
		began = now
	}
	n.steps = append(n.steps, step{state: state, name: name, began: began})
}

// end sends the trace of what has ended in a cycle.
func (t *tracer) end(id string, cycle nodepool.CycleReport) {
	x := t.open[id]
	delete(t.open, id)
	failed, ofInstance := failures(cycle.Events, id)
	ctx, whole := t.tracer.Start(context.Background(), x.name, trace.WithTimestamp(x.began), trace.WithAttributes(x.about...))
	if failed != "" {
		whole.SetStatus(codes.Error, failed)
	}
	for _, key := range slices.Sorted(maps.Keys(x.nodes)) {
		n := x.nodes[key]
		if why := ofInstance[n.instance]; why != "" && n.instance != "" {
			n.err = why
		}
		n.send(ctx, t.tracer, cycle.At)
	}
	whole.End(trace.WithTimestamp(cycle.At))
}

// send makes spans of the steps. What went wrong was in the last one.
func (n *node) send(ctx context.Context, tracer trace.Tracer, now time.Time) {
	var steps []step
	for _, s := range n.steps {
		if s.end.IsZero() {
			s.end = now
		}
		if s.name != "" { // or nothing comes after the state
			steps = append(steps, s)
		}
	}
	for i, s := range steps {
		_, span := tracer.Start(ctx, s.name, trace.WithTimestamp(s.began), trace.WithAttributes(n.about...))
		if n.err != "" && i == len(steps)-1 {
			span.SetStatus(codes.Error, n.err)
		}
		span.End(trace.WithTimestamp(s.end))
	}
}

// failures are why an action as a whole failed, "" if it did not, and why single instances did.
func failures(events []journal.Event, action string) (whole string, ofInstance map[string]string) {
	ofInstance = map[string]string{}
	for _, e := range events {
		switch e.Reason {
		case journal.EventScaleUpFailed, journal.EventScaleUpAborted, journal.EventScaleDownAborted:
			if e.Action == action {
				whole = e.Message
			}
		case journal.EventLaunchFailed, journal.EventJoinFailed, journal.EventDrainFailed:
			ofInstance[e.Instance] = e.Message
		}
	}
	return whole, ofInstance
}

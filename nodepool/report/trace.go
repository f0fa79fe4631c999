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

// tracer sends a trace of each action of a pool when it has ended, from the journal of each cycle: a span for the
// action, and one for each step of each of its nodes. After a takeover, the trace lacks the earlier steps.
type tracer struct {
	tracer trace.Tracer
	open   map[string]*traced // by id of the action, or kind and instance
}

// traced is an open action.
type traced struct {
	name       string
	start      time.Time
	attributes []attribute.KeyValue
	nodes      map[string]*node
}

// node is a node that an action launches or removes.
type node struct {
	steps      []step // the last one is open
	attributes []attribute.KeyValue
	instance   string
	err        string
}

type step struct {
	state      string
	name       string // "" = no step follows the state
	start, end time.Time
}

// The names of the steps that follow each state.
var (
	launchSteps = map[state.SlotState]string{state.SlotPlanned: "Launch", state.SlotLaunched: "Join"}
	removeSteps = map[state.RemovalState]string{
		state.RemovalPlanned: "Taint", state.RemovalTainted: "Cordon",
		state.RemovalDraining: "Drain", state.RemovalDrained: "Terminate",
		state.RemovalTerminated: "DeleteNode", state.RemovalRestoring: "Restore",
	}
)

func newTracer(of trace.TracerProvider) *tracer {
	return &tracer{of.Tracer("github.com/foresail/foresail/nodepool"), map[string]*traced{}}
}

// report updates the open traces after a cycle, and sends those that have ended.
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
	removals := func(kind string, list []state.Removal) {
		for i := range list {
			id := kind + " " + list[i].InstanceID
			found[id] = true
			t.of(id, kind, since(list[i].Since, cycle.At), cycle.Pool).removal(&list[i], cycle.At)
		}
	}
	removals("Interruption", cycle.Record.Interruptions)
	removals("Repair", cycle.Record.Repairs)
	removals("Ending", cycle.Record.Endings)
	for _, id := range slices.Sorted(maps.Keys(t.open)) {
		if !found[id] {
			t.end(id, cycle)
		}
	}
}

func (t *tracer) of(id, name string, start time.Time, pool string) *traced {
	x := t.open[id]
	if x == nil {
		x = &traced{
			name: name, start: start, nodes: map[string]*node{},
			attributes: []attribute.KeyValue{attribute.String("foresail.workerpool", pool)},
		}
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
	x.attributes = append(x.attributes[:1:1], attribute.String("foresail.action", a.ID),
		attribute.String("foresail.reason", string(a.Reason)), attribute.String("foresail.message", a.Message))
	for i := range a.Slots {
		x.slot(&a.Slots[i], since(a.Slots[i].Requested, a.Started, cycle.At), cycle.At)
	}
	for i := range a.Targets {
		x.removal(&a.Targets[i], cycle.At)
	}
}

// since returns the first known time.
func since(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

func (x *traced) slot(s *state.Slot, start, now time.Time) {
	n := x.node(strconv.Itoa(s.Number))
	n.instance, n.err = s.InstanceID, s.Error
	n.attributes = []attribute.KeyValue{
		semconv.CloudAvailabilityZone(s.Zone), semconv.HostType(s.InstanceType),
		semconv.HostID(s.InstanceID), semconv.K8SNodeName(s.Node),
	}
	n.to(string(s.State), launchSteps[s.State], start, now)
}

func (x *traced) removal(r *state.Removal, now time.Time) {
	n := x.node(r.InstanceID)
	n.instance, n.err = r.InstanceID, r.Error
	n.attributes = []attribute.KeyValue{
		semconv.CloudAvailabilityZone(r.Zone), semconv.HostID(r.InstanceID), semconv.K8SNodeName(r.Node),
	}
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

// to begins the step of a state. The first step that is seen began at start.
func (n *node) to(state, name string, start, now time.Time) {
	if k := len(n.steps) - 1; k >= 0 {
		if n.steps[k].state == state {
			return
		}
		n.steps[k].end = now
		start = now
	}
	n.steps = append(n.steps, step{state: state, name: name, start: start})
}

// end sends the trace of an action that has ended in a cycle.
func (t *tracer) end(id string, cycle nodepool.CycleReport) {
	x := t.open[id]
	delete(t.open, id)
	failed, ofInstance := failures(cycle.Events, id)
	ctx, whole := t.tracer.Start(context.Background(), x.name,
		trace.WithTimestamp(x.start), trace.WithAttributes(x.attributes...))
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

// send sends spans of the steps. The last one has the error.
func (n *node) send(ctx context.Context, tracer trace.Tracer, now time.Time) {
	var steps []step
	for _, s := range n.steps {
		if s.end.IsZero() {
			s.end = now
		}
		if s.name != "" {
			steps = append(steps, s)
		}
	}
	for i, s := range steps {
		_, span := tracer.Start(ctx, s.name, trace.WithTimestamp(s.start), trace.WithAttributes(n.attributes...))
		if n.err != "" && i == len(steps)-1 {
			span.SetStatus(codes.Error, n.err)
		}
		span.End(trace.WithTimestamp(s.end))
	}
}

// failures returns why an action failed as a whole, "" if it did not, and why single instances did.
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

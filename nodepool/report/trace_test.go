package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/state"
)

// recorder returns a tracer and its spans.
func recorder() (*tracer, *tracetest.InMemoryExporter) {
	sent := tracetest.NewInMemoryExporter()
	return newTracer(sdktrace.NewTracerProvider(sdktrace.WithSyncer(sent))), sent
}

// span is a sent span, in seconds since the start.
type span struct {
	name     string
	from, to int
	err      string
}

func spansOf(t *testing.T, sent *tracetest.InMemoryExporter) (out []span) {
	t.Helper()
	all := sent.GetSpans()
	var root tracetest.SpanStub
	for _, s := range all {
		x := span{name: s.Name, from: int(s.StartTime.Sub(start).Seconds()), to: int(s.EndTime.Sub(start).Seconds())}
		if s.Status.Code == codes.Error {
			x.err = s.Status.Description
		}
		out = append(out, x)
		if !s.Parent.IsValid() {
			root = s
		}
	}
	for _, s := range all {
		assert.Equal(t, root.SpanContext.TraceID(), s.SpanContext.TraceID(), "one trace")
		if s.Name != root.Name {
			assert.Equal(t, root.SpanContext.SpanID(), s.Parent.SpanID(), s.Name)
		}
	}
	sent.Reset()
	return out
}

func after(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func cycleAt(seconds int, r state.Record, events ...journal.Event) nodepool.CycleReport {
	return nodepool.CycleReport{Pool: "workers", At: after(seconds), Leading: true, Record: r, Events: events}
}

func TestTraceOfAScaleUp(t *testing.T) {
	tracer, sent := recorder()
	up := func(one, other state.Slot) state.Record {
		other.Number = 1
		return state.Record{
			Action: &state.Action{
				ID: "a-1", Kind: state.ActionUp, Started: start, Message: "5 pods", Slots: []state.Slot{one, other},
			},
		}
	}
	planned := state.Slot{State: state.SlotPlanned, Requested: after(1)}
	launched := state.Slot{State: state.SlotLaunched, Requested: after(1), InstanceID: "i-1"}
	failing := state.Slot{State: state.SlotLaunched, Requested: after(1), InstanceID: "i-2"}
	ready := state.Slot{State: state.SlotReady, Requested: after(1), InstanceID: "i-1", Node: "a"}
	tracer.report(cycleAt(1, up(planned, planned)))
	tracer.report(cycleAt(3, up(launched, failing)))
	tracer.report(cycleAt(20, up(launched, failing)))
	tracer.report(cycleAt(40, up(ready, failing)))
	assert.Empty(t, sent.GetSpans(), "the action is open")
	tracer.report(
		cycleAt(
			90, state.Record{},
			journal.Event{
				Reason: journal.EventJoinFailed, Warning: true, Instance: "i-2", Action: "a-1", Message: "Not Ready",
			},
		),
	)
	assert.Equal(t, []span{
		{"Launch", 1, 3, ""}, {"Join", 3, 40, ""}, {"Launch", 1, 3, ""}, {"Join", 3, 90, "Not Ready"}, {"ScaleUp", 0, 90, ""},
	}, spansOf(t, sent))
	tracer.report(cycleAt(100, state.Record{}))
	assert.Empty(t, sent.GetSpans(), "once")
}

// A process that takes over knows when the action began and when launches were first tried.
func TestTraceAfterATakeover(t *testing.T) {
	tracer, sent := recorder()
	r := state.Record{
		Action: &state.Action{
			ID: "a-1", Kind: state.ActionUp, Started: start,
			Slots: []state.Slot{{Token: "one", State: state.SlotLaunched, Requested: after(2), InstanceID: "i-1"}},
		},
	}
	other := cycleAt(10, r)
	other.Leading = false
	tracer.report(other)
	assert.Empty(t, tracer.open, "another process traces it")
	tracer.report(cycleAt(20, r))
	tracer.report(
		cycleAt(
			30, state.Record{},
			journal.Event{Reason: journal.EventScaleUpFailed, Action: "a-1", Message: "None of 1 nodes joined"},
		),
	)
	assert.Equal(t, []span{{"Join", 2, 30, ""}, {"ScaleUp", 0, 30, "None of 1 nodes joined"}}, spansOf(t, sent))

	tracer.report(cycleAt(40, r))
	lost := cycleAt(50, state.Record{})
	lost.Leading = false
	tracer.report(lost)
	assert.Empty(t, sent.GetSpans(), "the new leader sends it")
}

func TestTraceOfRemovals(t *testing.T) {
	tracer, sent := recorder()
	removal := func(s state.RemovalState, since int) state.Removal {
		return state.Removal{InstanceID: "i-1", Node: "a", State: s, Since: after(since)}
	}
	down := func(r state.Removal) state.Record {
		return state.Record{
			Action: &state.Action{ID: "a-2", Kind: state.ActionDown, Started: start, Targets: []state.Removal{r}},
		}
	}
	for at, s := range []state.RemovalState{
		state.RemovalPlanned, state.RemovalTainted, state.RemovalDraining, state.RemovalDraining, state.RemovalDrained,
		state.RemovalTerminated, state.RemovalCompleted,
	} {
		tracer.report(cycleAt(at, down(removal(s, 0))))
	}
	tracer.report(cycleAt(8, state.Record{}))
	assert.Equal(t, []span{
		{"Taint", 0, 1, ""}, {"Cordon", 1, 2, ""}, {"Drain", 2, 4, ""}, {"Terminate", 4, 5, ""}, {"DeleteNode", 5, 6, ""},
		{"ScaleDown", 0, 8, ""},
	}, spansOf(t, sent))

	tracer.report(cycleAt(10, state.Record{Interruptions: []state.Removal{removal(state.RemovalDraining, 9)}}))
	tracer.report(cycleAt(12, state.Record{Interruptions: []state.Removal{removal(state.RemovalRestoring, 12)}}))
	tracer.report(
		cycleAt(
			15, state.Record{}, journal.Event{Reason: journal.EventDrainFailed, Instance: "i-1", Message: "A pod stays"},
		),
	)
	assert.Equal(
		t, []span{{"Drain", 9, 12, ""}, {"Restore", 12, 15, "A pod stays"}, {"Interruption", 9, 15, ""}}, spansOf(t, sent),
	)
	require.Empty(t, tracer.open)
}

package kubeapi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/foresail/foresail/adapter/serving"
)

func TestTraceSaysWhatWasRead(t *testing.T) {
	sent := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(sent)).Tracer("test")
	now := time.Unix(1000, 0)
	q := serving.Query{Metric: serving.LoadTotal, Selector: serving.ByName("checkout"), Now: now}
	about := func(item serving.Item, err error) map[attribute.Key]any {
		ctx, span := tracer.Start(t.Context(), "GET")
		Trace(ctx, q, item, err)
		span.End()
		require.Len(t, sent.GetSpans(), 1)
		out := map[attribute.Key]any{}
		for _, a := range sent.GetSpans()[0].Attributes {
			out[a.Key] = a.Value.AsInterface()
		}
		sent.Reset()
		return out
	}
	assert.Equal(t, map[attribute.Key]any{
		"foresail.metric": serving.LoadTotal, "foresail.selector": q.Selector.String(), "foresail.result": "OK",
		"foresail.value_milli": int64(3500), "foresail.sample_age_seconds": 1.5,
	}, about(serving.Item{Milli: 3500, Timestamp: now.Add(-1500 * time.Millisecond)}, nil))
	failed := &serving.Error{Class: serving.Unavailable, Reason: "SamplesStale",
		Message: "the newest sample is 40s old"}
	assert.Equal(t, map[attribute.Key]any{
		"foresail.metric": serving.LoadTotal, "foresail.selector": q.Selector.String(),
		"foresail.result":  "SamplesStale",
		"foresail.message": failed.Message,
	}, about(serving.Item{}, failed))
	Trace(t.Context(), q, serving.Item{}, nil) // that no one traces
}

package kubeapi

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/foresail/foresail/adapter/serving"
)

// Trace says on the span of a request, if it is traced, what the answer was and how old the newest sample behind it.
func Trace(ctx context.Context, q serving.Query, item serving.Item, err error) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	about := []attribute.KeyValue{attribute.String("foresail.metric", q.Metric),
		attribute.String("foresail.selector", q.Selector.String())}
	if err != nil {
		failed := serving.AsError(err)
		about = append(about, attribute.String("foresail.result", failed.Reason),
			attribute.String("foresail.message", failed.Message))
	} else {
		about = append(about, attribute.String("foresail.result", ResultOK),
			attribute.Int64("foresail.value_milli", item.Milli),
			attribute.Float64("foresail.sample_age_seconds", max(0, q.Now.Sub(item.Timestamp)).Seconds()))
	}
	span.SetAttributes(about...)
}

package keda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/adapter/serving"
)

// Scaler answers KEDA from snapshots. No answer waits for anything.
type Scaler struct {
	externalscaler.UnimplementedExternalScalerServer
	reader serving.Reader
	known  func() error
	now    func() time.Time

	rounds   rounds
	ending   chan struct{}        // closed when streams have to end
	lifetime func() time.Duration // of a stream
}

// NewScaler returns a Scaler of the snapshots of a reader, whose age it judges by the clock. known
// returns why the reader does not have every PredictedMetric yet.
func NewScaler(reader serving.Reader, known func() error, now func() time.Time) *Scaler {
	return &Scaler{
		reader: reader, known: known, now: now,
		rounds: rounds{next: make(chan struct{})}, ending: make(chan struct{}), lifetime: streamLifetime,
	}
}

// GetMetricSpec returns the one metric of a trigger with its target.
func (s *Scaler) GetMetricSpec(_ context.Context,
	ref *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	t, err := triggerOf(ref)
	if err != nil {
		return nil, asStatus(err)
	}
	target, err := s.target(t)
	if err != nil {
		return nil, asStatus(err)
	}
	return specOf(t, target), nil
}

func specOf(t trigger, target float64) *externalscaler.GetMetricSpecResponse {
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{{MetricName: t.metric,
		TargetSizeFloat: target}}}
}

// GetMetrics returns the value of a trigger.
func (s *Scaler) GetMetrics(_ context.Context,
	r *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	t, err := triggerOf(r.GetScaledObjectRef())
	if err != nil {
		return nil, asStatus(err)
	}
	// An HPA from before a change of the trigger must not divide the new metric by the old target.
	if asked := r.GetMetricName(); asked != "" && !strings.EqualFold(asked, t.metric) {
		return nil, asStatus(invalid("metricName", asked, t.metric+", the metric of the trigger"))
	}
	milli, err := s.value(t)
	if err != nil {
		return nil, asStatus(err)
	}
	value := &externalscaler.MetricValue{MetricName: t.metric, MetricValueFloat: numberOf(milli)}
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{value}}, nil
}

// IsActive returns whether the value of a trigger is above its activation.
func (s *Scaler) IsActive(_ context.Context,
	ref *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	t, err := triggerOf(ref)
	if err != nil {
		return nil, asStatus(err)
	}
	value, err := s.value(t)
	if err != nil {
		return nil, asStatus(err)
	}
	return &externalscaler.IsActiveResponse{Result: t.isActive(value)}, nil
}

// numberOf returns milli-units as a number that every KEDA reads as the same milli-units: KEDA 2.17 to 2.19 truncate v
// × 1000, later ones round v to three decimals. A quarter of a milli-unit above the value both return it. Above 2^50
// milli-units a float64 has no such quarter, and served values have a margin instead.
func numberOf(milli int64) float64 {
	if milli == 0 {
		return 0
	}
	return (float64(milli) + 0.25) / 1000
}

// target returns what the HPA divides by.
func (s *Scaler) target(t trigger) (float64, error) {
	milli, err := serving.ReadTarget(s.reader, s.query(t))
	if err != nil {
		return 0, s.explain(err)
	}
	return numberOf(milli), nil
}

// value returns the value of a trigger in milli-units.
func (s *Scaler) value(t trigger) (int64, error) {
	item, err := serving.Read(s.reader, s.query(t))
	if err != nil {
		return 0, s.explain(err)
	}
	return item.Milli, nil
}

func (s *Scaler) query(t trigger) serving.Query {
	return serving.Query{Namespace: t.predicted.Namespace, Selector: serving.ByName(t.predicted.Name),
		Metric: t.metric, Now: s.now()}
}

// explain replaces the error about a PredictedMetric that does not exist while it is not known which do.
func (s *Scaler) explain(err error) error {
	if known, ok := errors.AsType[*serving.Error](err); !ok || known.Class != serving.NotFound {
		return err
	}
	if starting := s.known(); starting != nil {
		return &serving.Error{
			Class: serving.Unavailable, Reason: serving.ReasonNoForecast,
			Message: fmt.Sprintf("this replica of Foresail does not know every PredictedMetric yet: %v", starting),
		}
	}
	return err
}

// statusError is an error of package serving as gRPC reports it.
type statusError struct{ cause *serving.Error }

func asStatus(err error) error { return &statusError{serving.AsError(err)} }

func (e *statusError) Error() string { return e.cause.Message }
func (e *statusError) Unwrap() error { return e.cause }

// GRPCStatus returns the status; package status looks for this method.
func (e *statusError) GRPCStatus() *status.Status {
	code := codes.Internal
	switch e.cause.Class {
	case serving.NotFound:
		code = codes.NotFound
	case serving.Invalid:
		code = codes.InvalidArgument
	case serving.Unavailable:
		code = codes.Unavailable
	}
	return status.New(code, e.cause.Message)
}

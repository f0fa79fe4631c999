package keda

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving/servingtest"
)

// sink is the server's side of a stream.
type sink[T any] struct {
	grpc.ServerStream
	ctx  context.Context
	sent []*T
	err  error // of Send
}

func (s *sink[T]) Context() context.Context { return s.ctx }

func (s *sink[T]) Send(message *T) error {
	s.sent = append(s.sent, message)
	return s.err
}

// opened is a stream in a synctest bubble, whose rounds are the test's.
type opened[T any] struct {
	*sink[T]
	scaler *Scaler
	memory *servingtest.Memory
	cancel context.CancelFunc
	done   chan struct{}
	result error // once done
}

// openStream opens one for shop/checkout, of which there is a snapshot unless it is nil.
func openStream[T any](t *testing.T, method func(*Scaler, *externalscaler.ScaledObjectRef, *sink[T]) error,
	first ...snapshot.Snapshot) *opened[T] {
	t.Helper()
	s, memory := newScaler(first...)
	begun := time.Now()
	s.now = func() time.Time { return servingtest.Now.Add(time.Since(begun)) }
	ctx, cancel := context.WithCancel(t.Context())
	o := &opened[T]{sink: &sink[T]{ctx: ctx}, scaler: s, memory: memory, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		o.result = method(s, refTo(), o.sink)
	}()
	synctest.Wait()
	return o
}

func openActivity(t *testing.T, first ...snapshot.Snapshot) *opened[externalscaler.IsActiveResponse] {
	t.Helper()
	return openStream(t, func(s *Scaler, ref *externalscaler.ScaledObjectRef,
		stream *sink[externalscaler.IsActiveResponse]) error {
		return s.StreamIsActive(ref, stream)
	}, first...)
}

func openSpecs(t *testing.T, first ...snapshot.Snapshot) *opened[externalscaler.GetMetricSpecResponse] {
	t.Helper()
	return openStream(t, func(s *Scaler, ref *externalscaler.ScaledObjectRef,
		stream *sink[externalscaler.GetMetricSpecResponse]) error {
		return s.StreamMetricSpec(ref, stream)
	}, first...)
}

// round publishes, fresh as of now, and has the stream look a period later.
func (o *opened[T]) round(changes ...func(*snapshot.Snapshot)) {
	time.Sleep(period)
	s := servingtest.Healthy("checkout", "checkout")
	s.At, s.NewestSample = o.scaler.now(), o.scaler.now()
	for _, change := range changes {
		change(&s)
	}
	o.memory.Publish(s)
	o.scaler.rounds.begin()
	synctest.Wait()
}

func results(sent []*externalscaler.IsActiveResponse) []bool {
	list := []bool{}
	for _, r := range sent {
		list = append(list, r.Result)
	}
	return list
}

// targets returns what KEDA makes of the targets, with three decimals.
func targets(t *testing.T, sent []*externalscaler.GetMetricSpecResponse) []float64 {
	t.Helper()
	list := []float64{}
	for _, r := range sent {
		require.Len(t, r.MetricSpecs, 1, "KEDA 2.21 would drop an empty list")
		list = append(list, math.Round(r.MetricSpecs[0].TargetSizeFloat*1000)/1000)
	}
	return list
}

func TestActivityIsSentAtOnceAndWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openActivity(t, servingtest.Healthy("checkout", "checkout"))
		assert.Equal(t, []bool{true}, results(o.sent))
		for range 60 {
			o.round(loaded(12))
		}
		assert.Equal(t, []bool{true}, results(o.sent), "each one makes KEDA write a status")
		o.round(loaded(0))
		assert.Equal(t, []bool{true, false}, results(o.sent))
		o.round(loaded(1))
		assert.Equal(t, []bool{true, false, true}, results(o.sent))
		o.cancel()
		<-o.done
		assert.Equal(t, codes.Canceled, status.Code(o.result))
	})
}

func TestActivityThatFlickersWakesSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openActivity(t, servingtest.Healthy("checkout", "checkout"))
		for range 60 / 2 {
			o.round(loaded(0))
			o.round(loaded(1))
		}
		woken := 0
		for _, r := range results(o.sent) {
			if r {
				woken++
			}
		}
		assert.Equal(t, 1+6, woken, "in a minute")
		o.cancel()
		<-o.done
	})
}

// TestStreamsOutliveWhatPasses is about KEDA waiting a minute before it opens a stream again that ended with an error.
func TestStreamsOutliveWhatPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openActivity(t) // there is no such PredictedMetric yet
		assert.Empty(t, o.sent)
		o.round(withoutForecast(snapshot.NoReadyPods))
		assert.Empty(t, o.sent, "unknown is not inactive")
		o.round(loaded(1))
		assert.Equal(t, []bool{true}, results(o.sent))
		o.round(withoutForecast(snapshot.Stale))
		for range 20 {
			o.round(withoutForecast(snapshot.Stale))
		}
		assert.Equal(t, []bool{true}, results(o.sent))
		o.round(loaded(1))
		assert.Equal(t, []bool{true, true}, results(o.sent), "no one knows what happened meanwhile")
		o.round(loaded(0), inDryRun)
		assert.Equal(t, []bool{true, true}, results(o.sent), "dry run is not inactive either")
		o.cancel()
		<-o.done
	})
}

func TestTargetsAreSentAtOnceAndWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openSpecs(t, servingtest.Changed(servingtest.Healthy("checkout", "checkout"),
			withoutForecast(snapshot.WaitingForSamples)))
		assert.Equal(t, []float64{0.7}, targets(t, o.sent), "without samples too")
		o.round()
		o.round(loaded(100))
		assert.Equal(t, []float64{0.7}, targets(t, o.sent))
		threshold := func(v float64) func(*snapshot.Snapshot) { return func(s *snapshot.Snapshot) { s.Threshold = v } }
		o.round(threshold(0.007))
		o.round(threshold(0), withoutForecast(snapshot.InvalidSpec))
		o.round(threshold(0.007))
		o.round(threshold(1e6))
		assert.Equal(t, []float64{0.7, 0.007, 1e6}, targets(t, o.sent),
			"a rejected spec has none, and the last one stays")
		o.cancel()
		<-o.done
	})
}

func TestStreamsEndWithoutAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		aged := openActivity(t)
		<-aged.done
		require.NoError(t, aged.result)
		assert.Less(t, time.Since(begun), connectionGrace, "before its connection is cut")
		assert.GreaterOrEqual(t, time.Since(begun), maxStreamLifetime*4/5)

		ended := openSpecs(t)
		close(ended.scaler.ending)
		<-ended.done
		require.NoError(t, ended.result)
	})
}

// unlisted is a Reader of nothing, which no one may list.
type unlisted struct {
	*servingtest.Memory
	t *testing.T
}

func (u unlisted) List(string) []snapshot.Snapshot {
	assert.Fail(u.t, "thousands of streams would list a namespace each second")
	return nil
}

func TestStreamsOfNothingCostNoLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, memory := newScaler()
		s.reader = unlisted{memory, t}
		ctx, cancel := context.WithCancel(t.Context())
		for _, open := range []func() error{
			func() error { return s.StreamIsActive(refTo(), &sink[externalscaler.IsActiveResponse]{ctx: ctx}) },
			func() error {
				return s.StreamMetricSpec(refTo(), &sink[externalscaler.GetMetricSpecResponse]{ctx: ctx})
			},
		} {
			go func() { assert.Equal(t, codes.Canceled, status.Code(open())) }()
		}
		synctest.Wait()
		s.rounds.begin()
		synctest.Wait()
		cancel()
	})
}

func TestStreamsEndWithTheirClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openActivity(t)
		o.err = errors.New("gone")
		o.round(loaded(1))
		<-o.done
		assert.EqualError(t, o.result, "gone")
	})
}

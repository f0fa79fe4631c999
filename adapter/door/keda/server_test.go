package keda

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving/servingtest"
)

// patience is how long a test waits for what happens soon.
const patience = 30 * time.Second

// running is a Server of shop/checkout in memory.
type running struct {
	*Server
	memory   *servingtest.Memory
	listener *bufconn.Listener
	stop     func() // and wait for it
}

// run runs a Server until the test ends, if it has not been stopped before.
func run(t *testing.T, change func(*Server)) *running {
	t.Helper()
	s, memory := newScaler(servingtest.Healthy("checkout", "checkout"))
	r := &running{memory: memory, listener: bufconn.Listen(1 << 16)}
	r.Server = newServer(r.listener, nil, s, allKnown)
	if change != nil {
		change(r.Server)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	t.Cleanup(r.stop)
	return r
}

// dial connects a client of its own.
func (r *running) dial(t *testing.T, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn,
			error) {
			return r.listener.DialContext(ctx)
		}))
	conn, err := grpc.NewClient("passthrough:///foresail", options...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (r *running) client(t *testing.T) externalscaler.ExternalScalerClient {
	t.Helper()
	return externalscaler.NewExternalScalerClient(r.dial(t))
}

func TestServing(t *testing.T) {
	r := run(t, nil)
	c := r.client(t)
	spec, err := c.GetMetricSpec(t.Context(), refTo())
	require.NoError(t, err)
	assert.InDelta(t, 0.7, spec.MetricSpecs[0].TargetSizeFloat, 0.0005)
	values, err := c.GetMetrics(t.Context(),
		&externalscaler.GetMetricsRequest{ScaledObjectRef: refTo(), MetricName: spec.MetricSpecs[0].MetricName})
	require.NoError(t, err)
	assert.InDelta(t, 10.01, values.MetricValues[0].MetricValueFloat, 0.0005)
	active, err := c.IsActive(t.Context(), refTo("activation", "10.01"))
	require.NoError(t, err)
	assert.False(t, active.Result)
	_, err = c.GetMetricSpec(t.Context(), refTo("metric", "predicted_load"))
	assertStatus(t, err, codes.InvalidArgument, "predicted_load needs a target of type Value")
	_, err = c.GetMetrics(t.Context(),
		&externalscaler.GetMetricsRequest{ScaledObjectRef: refTo("predictedMetric", "other")})
	assertStatus(t, err, codes.NotFound, "the namespace has checkout")
	stream, err := c.StreamIsActive(t.Context(), refTo("metric", "predicted_load"))
	require.NoError(t, err)
	_, err = stream.Recv()
	assertStatus(t, err, codes.InvalidArgument, "predicted_load needs a target of type Value")

	for labels, want := range map[[2]string]float64{
		{"GetMetricSpec", "OK"}: 1, {"GetMetricSpec", "InvalidTrigger"}: 1, {"GetMetrics", "OK"}: 1,
		{"GetMetrics", "NotFound"}: 1,
		{"IsActive", "OK"}:         1, {"StreamIsActive", "InvalidTrigger"}: 1,
	} {
		assert.InDelta(t, want, observations(t, r.duration.WithLabelValues(labels[0], labels[1])), 0, labels)
	}
}

func TestLargeRequestsAreRefused(t *testing.T) {
	r := run(t, nil)
	_, err := r.client(t).GetMetricSpec(t.Context(), refTo("xFromEnv", string(make([]byte, maxMessage))))
	assert.Equal(t, codes.ResourceExhausted, status.Code(err), err)
}

func TestStreamsFollowSnapshots(t *testing.T) {
	r := run(t, nil)
	c := r.client(t)
	specs, err := c.StreamMetricSpec(t.Context(), refTo())
	require.NoError(t, err)
	activity, err := c.StreamIsActive(t.Context(), refTo())
	require.NoError(t, err)
	spec, err := specs.Recv()
	require.NoError(t, err)
	assert.InDelta(t, 0.7, spec.MetricSpecs[0].TargetSizeFloat, 0.0005)
	active, err := activity.Recv()
	require.NoError(t, err)
	assert.True(t, active.Result)

	r.memory.Publish(servingtest.Changed(servingtest.Healthy("checkout", "checkout"), func(s *snapshot.Snapshot) {
		s.Threshold = 0.007
		loaded(0)(s)
	}))
	r.scaler.rounds.begin()
	spec, err = specs.Recv()
	require.NoError(t, err)
	assert.InDelta(t, 0.007, spec.MetricSpecs[0].TargetSizeFloat, 0.0005)
	active, err = activity.Recv()
	require.NoError(t, err)
	assert.False(t, active.Result)
}

func TestShutdownEndsStreamsWithoutAnError(t *testing.T) {
	r := run(t, nil)
	c := r.client(t)
	specs, err := c.StreamMetricSpec(t.Context(), refTo())
	require.NoError(t, err)
	activity, err := c.StreamIsActive(t.Context(), refTo("predictedMetric", "none"))
	require.NoError(t, err)
	_, err = specs.Recv()
	require.NoError(t, err)
	require.Eventually(t, func() bool { return testutil.ToFloat64(r.open.WithLabelValues("StreamIsActive")) == 1 },
		patience, time.Millisecond)
	r.stop()
	_, err = specs.Recv()
	assert.ErrorIs(t, err, io.EOF)
	_, err = activity.Recv()
	assert.ErrorIs(t, err, io.EOF)
	assert.Zero(t, testutil.ToFloat64(r.open.WithLabelValues("StreamIsActive")))
	assert.InDelta(t, 1, observations(t, r.duration.WithLabelValues("StreamMetricSpec", "OK")), 0)
}

// looks is a Reader that reports each look at a PredictedMetric.
type looks struct {
	*servingtest.Memory
	at chan struct{}
}

func (l looks) Get(metric types.NamespacedName) (snapshot.Snapshot, bool) {
	select {
	case l.at <- struct{}{}:
	default:
	}
	return l.Memory.Get(metric)
}

// TestClientsThatDoNotReadDelayNoOther fills what is kept for a client that reads nothing.
func TestClientsThatDoNotReadDelayNoOther(t *testing.T) {
	looked := make(chan struct{}, 1)
	r := run(t, func(s *Server) {
		s.stopTimeout = 100 * time.Millisecond
		s.scaler.reader = looks{s.scaler.reader.(*servingtest.Memory), looked}
	})
	slow := externalscaler.NewExternalScalerClient(r.dial(t, grpc.WithStaticStreamWindowSize(1<<16)))
	_, err := slow.StreamMetricSpec(t.Context(), refTo())
	require.NoError(t, err)
	blocked := false
	for i := 0; i < 10_000 && !blocked; i++ {
		r.memory.Publish(servingtest.Changed(servingtest.Healthy("checkout", "checkout"),
			func(s *snapshot.Snapshot) { s.Threshold = float64(i + 1) }))
		r.scaler.rounds.begin()
		select {
		case <-looked:
		case <-time.After(300 * time.Millisecond):
			blocked = true
		}
	}
	require.True(t, blocked, "the window of the client is full")
	r.scaler.rounds.begin()
	_, err = r.client(t).GetMetricSpec(t.Context(), refTo())
	require.NoError(t, err)
	stopped := make(chan struct{})
	go func() { r.stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(patience):
		assert.Fail(t, "the shutdown waits for a client")
	}
}

func TestStreamsAreLimited(t *testing.T) {
	r := run(t, func(s *Server) { s.maxStreams = 2 })
	c := r.client(t)
	var held []context.CancelFunc
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		held = append(held, cancel)
		stream, err := c.StreamMetricSpec(ctx, refTo())
		require.NoError(t, err)
		_, err = stream.Recv()
		require.NoError(t, err)
	}
	stream, err := c.StreamIsActive(t.Context(), refTo())
	require.NoError(t, err)
	_, err = stream.Recv()
	assertStatus(t, err, codes.ResourceExhausted, "2 streams are open, the most that a replica of Foresail serves")
	assert.InDelta(t, 1, observations(t, r.duration.WithLabelValues("StreamIsActive", "TooManyStreams")), 0)
	_, err = c.GetMetricSpec(t.Context(), refTo())
	require.NoError(t, err, "calls are no streams")
	held[0]()
	require.Eventually(t, func() bool { return r.held.Load() == 1 }, patience, time.Millisecond)
	stream, err = c.StreamIsActive(t.Context(), refTo())
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	held[1]()
}

// TestManyStreamsLeaveNothing opens a thousand, three times.
func TestManyStreamsLeaveNothing(t *testing.T) {
	const many = 1000
	r := run(t, nil)
	c := r.client(t)
	_, err := c.GetMetricSpec(t.Context(), refTo())
	require.NoError(t, err)
	goroutines := runtime.NumGoroutine()
	heap := func() uint64 {
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	first := uint64(0)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		open := make([]grpc.ServerStreamingClient[externalscaler.IsActiveResponse], many)
		for i := range open {
			open[i], err = c.StreamIsActive(ctx, refTo())
			require.NoError(t, err)
		}
		for _, stream := range open {
			_, err := stream.Recv()
			require.NoError(t, err)
		}
		assert.InDelta(t, many, testutil.ToFloat64(r.open.WithLabelValues("StreamIsActive")), 0)
		assert.Less(t, runtime.NumGoroutine(), goroutines+3*many, "a stream has one here, and two at the client")
		r.scaler.rounds.begin()
		cancel()
		require.Eventually(t, func() bool {
			return r.held.Load() == 0 && runtime.NumGoroutine() < goroutines+10 // some are of the library and the test
		}, patience, 5*time.Millisecond)
		assert.Zero(t, testutil.ToFloat64(r.open.WithLabelValues("StreamIsActive")))
		clear(open)
		if first == 0 {
			first = heap()
		}
	}
	require.Eventually(t, func() bool { return heap() < first+1<<20 }, patience, 10*time.Millisecond,
		"connections forget a stream some time after it has ended")
}

func TestHealth(t *testing.T) {
	var ready atomic.Bool
	r := run(t, func(s *Server) {
		s.ready = func() error {
			if !ready.Load() {
				return errors.New("waiting for data")
			}
			return nil
		}
		s.reportHealth()
	})
	conn := r.dial(t)
	state := func() grpc_health_v1.HealthCheckResponse_ServingStatus {
		answer, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(),
			&grpc_health_v1.HealthCheckRequest{Service: "externalscaler.ExternalScaler"})
		require.NoError(t, err)
		return answer.Status
	}
	assert.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, state())
	_, err := externalscaler.NewExternalScalerClient(conn).GetMetricSpec(t.Context(), refTo())
	require.NoError(t, err, "targets need no data")
	ready.Store(true)
	r.reportHealth()
	assert.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, state())

	watching, cancel := context.WithCancel(t.Context())
	defer cancel() // or the server would wait for it
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(watching, &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	first, err := watch.Recv()
	require.NoError(t, err)
	assert.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, first.Status)
	go r.stop()
	last, err := watch.Recv()
	require.NoError(t, err)
	assert.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, last.Status)
}

// A replica without forecasts is one that KEDA cannot reach, so that it asks another one. Once it
// has been ready it answers, whatever becomes of its forecasts.
func TestConnectionsAreClosedUntilThereAreForecasts(t *testing.T) {
	var ready atomic.Bool
	scaler, _ := newScaler(servingtest.Healthy("checkout", "checkout"))
	server, err := NewServer(Options{Address: "127.0.0.1:0"}, scaler, func() error {
		if !ready.Load() {
			return errors.New("waiting for data")
		}
		return nil
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	defer func() {
		cancel()
		assert.NoError(t, <-done)
	}()
	ask := func(options ...grpc.CallOption) error {
		conn, err := grpc.NewClient(server.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_, err = externalscaler.NewExternalScalerClient(conn).GetMetricSpec(t.Context(), refTo(), options...)
		return err
	}
	err = ask()
	assert.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	ready.Store(true)
	require.NoError(t, ask())
	ready.Store(false)
	require.NoError(t, ask(), "targets need no data")
}

func TestServerThatEndsAtOnce(t *testing.T) {
	s, _ := newScaler()
	server, err := NewServer(Options{Address: "127.0.0.1:0"}, s, allKnown)
	require.NoError(t, err)
	over, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, server.Run(over))
}

// observations returns how many values a histogram has observed.
func observations(t *testing.T, of prometheus.Observer) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, of.(prometheus.Metric).Write(&m))
	return float64(m.GetHistogram().GetSampleCount())
}

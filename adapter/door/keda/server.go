package keda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/internal/servertls"
)

// Limits of what clients can hold. The metadata of a trigger has some hundred bytes, and so have answers.
const (
	maxMessage       = 64 << 10
	maxHeaders       = 16 << 10
	handshakeTimeout = 10 * time.Second

	// maxConnectionAge has KEDA resolve the Service again, and so find new replicas.
	maxConnectionAge = 5 * time.Minute
	// maxStreamLifetime is less than what connections get beyond their age: so streams end without an error.
	maxStreamLifetime = 5 * time.Minute
	connectionGrace   = maxStreamLifetime + time.Minute

	// maxStreams is enough for 5,000 ScaledObjects with a trigger of type external-push each.
	maxStreams = 10_000
	// stopTimeout is how long requests under way may take after the context has ended.
	stopTimeout = 5 * time.Second
)

// reasonTooManyStreams is the result of a stream beyond maxStreams.
const reasonTooManyStreams = "TooManyStreams"

// Server serves a Scaler and grpc.health.v1. It is also the prometheus.Collector of its requests.
type Server struct {
	*telemetry
	scaler   *Scaler
	ready    func() error
	listener net.Listener
	tls      *servertls.Config // nil: there is no TLS
	grpc     *grpc.Server
	health   *health.Server
	warnings *rate.Limiter
	log      klog.Logger // set before anything is served

	maxStreams  int64
	held        atomic.Int64 // streams
	stopTimeout time.Duration
}

// NewServer listens. The error is that of Options.Validate or an *OptionError. ready returns why
// the process must not receive requests yet; health reports it.
func NewServer(o Options, scaler *Scaler, ready func() error) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	secured, err := o.tlsConfig()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, &OptionError{"Address", o.Address, "one to listen on", err}
	}
	return newServer(listener, secured, scaler, ready), nil
}

func newServer(listener net.Listener, secured *servertls.Config, scaler *Scaler, ready func() error) *Server {
	s := &Server{
		telemetry: newTelemetry(), scaler: scaler, ready: ready, listener: &gate{Listener: listener, ready: ready},
		tls: secured, health: health.NewServer(),
		warnings: rate.NewLimiter(rate.Every(time.Minute), 1), log: klog.Background(),
		maxStreams: maxStreams, stopTimeout: stopTimeout,
	}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: maxConnectionAge, MaxConnectionAgeGrace: connectionGrace,
			Time: 30 * time.Second, Timeout: 10 * time.Second,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second,
			PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.call), grpc.StreamInterceptor(s.stream),
	}
	if secured != nil {
		options = append(options, grpc.Creds(handshakes{credentials.NewTLS(secured.Config), s.refused}))
	}
	s.grpc = grpc.NewServer(options...)
	externalscaler.RegisterExternalScalerServer(s.grpc, scaler)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.reportHealth()
	return s
}

// gate closes connections until the process is ready for the first time. A container that is
// started again has the address that KEDA knows: KEDA would ask it, and get no forecast, while
// another replica has one. Of replicas that it cannot reach it asks none.
type gate struct {
	net.Listener
	ready  func() error
	opened bool // only Accept, which is called by one goroutine, has it
}

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g.opened = g.opened || g.ready() == nil; g.opened {
			return conn, nil
		}
		_ = conn.Close() // it has served nothing
	}
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until the context ends, then ends streams and lets calls under way finish. It is called once.
func (s *Server) Run(ctx context.Context) error {
	s.log = klog.FromContext(ctx)
	parts, ctx := errgroup.WithContext(ctx)
	if s.tls != nil {
		parts.Go(func() error { return s.tls.Run(ctx) })
	}
	parts.Go(func() error {
		if err := s.grpc.Serve(s.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("serve KEDA on %s: %w", s.Addr(), err)
		}
		return nil
	})
	parts.Go(func() error { s.watch(ctx); s.stop(); return nil })
	return parts.Wait()
}

// watch begins the rounds of the streams, and reports health, until the context ends.
func (s *Server) watch(ctx context.Context) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		s.reportHealth()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.scaler.rounds.begin()
		}
	}
}

func (s *Server) reportHealth() {
	state := grpc_health_v1.HealthCheckResponse_SERVING
	if s.ready() != nil {
		state = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	for _, service := range []string{"", externalscaler.ExternalScaler_ServiceDesc.ServiceName} {
		s.health.SetServingStatus(service, state)
	}
}

// stop ends streams without an error, so that KEDA opens them elsewhere at once, and signals
// clients to make no more requests.
func (s *Server) stop() {
	s.health.Shutdown()
	close(s.scaler.ending)
	late := time.AfterFunc(s.stopTimeout, s.grpc.Stop) // ends what clients do not read
	defer late.Stop()
	s.grpc.GracefulStop()
}

func (s *Server) call(ctx context.Context, r any, info *grpc.UnaryServerInfo, answer grpc.UnaryHandler) (any, error) {
	method, ours := calls[info.FullMethod]
	if !ours {
		return answer(ctx, r)
	}
	start := s.scaler.now()
	response, err := answer(ctx, r)
	s.answered(method, err, s.scaler.now().Sub(start))
	return response, err
}

// stream bounds how many there are, those of health included: each has a goroutine and buffers.
func (s *Server) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handle grpc.StreamHandler) error {
	method, ours := streams[info.FullMethod]
	defer s.held.Add(-1)
	if s.held.Add(1) > s.maxStreams {
		if ours {
			s.duration.WithLabelValues(method, reasonTooManyStreams).Observe(0)
		}
		return status.Errorf(codes.ResourceExhausted,
			"%d streams are open, the most that a replica of Foresail serves", s.maxStreams)
	}
	if !ours {
		return handle(server, stream)
	}
	s.opened(method)
	start := s.scaler.now()
	err := handle(server, stream)
	s.ended(method, err, s.scaler.now().Sub(start))
	return err
}

// handshakes reports those that fail: KEDA logs that it cannot connect, but not always why.
type handshakes struct {
	credentials.TransportCredentials
	failed func(net.Conn, error)
}

// ServerHandshake implements credentials.TransportCredentials.
func (h handshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil && !errors.Is(err, io.EOF) { // as of a probe
		h.failed(raw, err)
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (h handshakes) Clone() credentials.TransportCredentials {
	return handshakes{h.TransportCredentials.Clone(), h.failed}
}

func (s *Server) refused(from net.Conn, err error) {
	s.tlsFailures.Inc()
	if s.warnings.Allow() {
		s.log.Info("A connection to the scaler of KEDA failed: the client has no certificate of the required authority and name, "+
			"or does not trust ours",
			"from", from.RemoteAddr(), "err", err)
	}
}

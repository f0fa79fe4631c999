// Package remotewrite is the source of samples that Prometheus servers, agents and collectors push. It receives
// Prometheus remote write 1.0 (prometheus.WriteRequest) and 2.0 (io.prometheus.write.v2.Request) on POST
// /api/v1/write, and OTLP/HTTP (ExportMetricsServiceRequest in protobuf or JSON) on POST /v1/metrics. Both feed
// the same subscriptions: names of OTLP become those that Prometheus would give them, and each data point is a
// series with one sample.
//
// # Where to read
//
//   - source.go: [Source] and its server; subscription.go: one PredictedMetric; options.go, flags.go: options.
//   - handler.go, otlphandler.go: the two protocols over HTTP; ingest.go: the way of a request that both share.
//   - access.go, passwords.go: who may write; body.go: bodies in shared memory; package decode: their content.
//   - batch.go: the samples of a request by pod; index.go: the pods of a series; track.go: one instance of a pod.
//
// # Which series are read
//
// A subscription reads a series that has its metric name and its labels (an absent label is empty), whose
// namespace label names its namespace, and whose pod label names one of its pods. The operator names the
// namespace label, and may name the namespace of series without it; otherwise these belong to no namespace.
// All other series are counted and skipped before they are decoded, and keep no state: senders may push
// everything they have. The same holds for series of unknown pods. At each rollout a pod may be scraped before
// Foresail knows that it is ready; if its samples were rejected, senders would log errors without a remedy.
//
// State is kept for each subscription and known instance. One series of each pod is read. If two arrive, neither is
// read, since their order is arbitrary, unless one was read for two minutes before and the other came less than two
// minutes ago: that is a hand-over. The end of a series is its stale marker (in OTLP, no recorded value); without one,
// a series has ended once it has been silent for 30 s or five times its spacing, whichever is more.
//
// # Answers
//
// 204 means that all samples were taken or are not needed. 400 means that some can never be taken, so senders
// must not send them again. A request that cannot be decoded is rejected as a whole. Otherwise the rest is
// taken, and the answer names what was rejected: invalid labels, a second series of a pod, samples that are too
// old or dated ahead of the clock. Samples less than 10 s ahead are left to the sink.
// X-Prometheus-Remote-Write-Samples-Written counts all samples that were not rejected, because senders take 0
// for a receiver that does not understand the message.
//
// 413 means that a limit was exceeded, 415 another encoding or message, 401 missing or wrong credentials. 503
// with Retry-After asks the sender to try again: too much at once, or the pods are not known yet. It is not
// 429, upon which Prometheus drops the samples by default.
//
// OTLP has 200 in place of 204, and in place of 400 where a part was rejected, with a partial success in the message.
// Exporters send a request again upon 503, and never upon any other of these.
package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"k8s.io/klog/v2"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/httpserve"
)

// Source receives samples that are pushed. It is safe for concurrent use.
type Source struct {
	options  Options
	index    *index[*member]
	ingester *ingester

	mu            sync.Mutex
	subscriptions map[types.NamespacedName]*subscription
}

// New returns a Source that receives nothing yet.
func New(o Options) *Source {
	o = o.withDefaults()
	x := newIndex[*member](o.Tenancy)
	return &Source{
		options: o, index: x, ingester: newIngester(&o, x), subscriptions: map[types.NamespacedName]*subscription{},
	}
}

// Set takes the samples that are pushed for the pods of a fleet, as c selects them, to a sink, until the next Set or
// Remove of the key.
func (s *Source) Set(key types.NamespacedName, c Config, fleet Fleet, sink source.Sink) {
	added := newSubscription(s.index, key, c, fleet, sink)
	s.mu.Lock()
	old := s.subscriptions[key]
	if old.same(added) {
		s.mu.Unlock()
		return
	}
	s.subscriptions[key] = added
	s.mu.Unlock()
	old.end()
	added.begin(s.options.Now())
}

// Remove stops taking samples for a key. The sink is not called any more when it returns.
func (s *Source) Remove(key types.NamespacedName) {
	s.mu.Lock()
	old := s.subscriptions[key]
	delete(s.subscriptions, key)
	s.mu.Unlock()
	old.end()
}

// reportSilence makes subscriptions without samples report that. If clearExamples is set it then clears the
// examples of other series, which makes room for newer ones.
func (s *Source) reportSilence(clearExamples bool) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.subscriptions))
	s.mu.Unlock()
	now := s.options.Now()
	for _, u := range all {
		u.reportSilence(now, clearExamples)
	}
	if clearExamples {
		s.index.clearExamples()
	}
}

// Timeouts for senders. A body of the maximum size arrives in time at 3 Mbit/s.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 5 * time.Minute // senders pause no longer where metrics are fresh enough to be of use
)

// Run serves until the context ends or serving fails.
func (s *Source) Run(ctx context.Context) error {
	if err := s.options.Validate(); err != nil {
		return fmt.Errorf("remote write: %w", err)
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", s.options.Address)
	if err != nil && ctx.Err() != nil {
		return nil //nolint:nilerr // the context ended before the address was open
	}
	if err != nil {
		return fmt.Errorf("remote write: %w", &OptionError{"Address", s.options.Address, "one to listen on", err})
	}
	return s.serve(ctx, l)
}

// handler returns the handler of both protocols.
func (s *Source) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+path, writeHandler{s.ingester}.handler())
	mux.Handle("POST "+otlpPath, otlpHandler{s.ingester})
	return recallable(mux)
}

// serve serves on a listener, which it closes.
func (s *Source) serve(ctx context.Context, l net.Listener) error {
	log := logr.ToSlogHandler(klog.FromContext(ctx).WithName("remote-write")) // the toolkit takes nothing else
	server := &http.Server{
		Handler:           admitted(s.handler()),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log, slog.LevelDebug),
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error {
		file := s.options.WebConfigFile
		guarded := &guardedListener{Listener: l, server: server, guard: newPasswords(s.options.Now).guard}
		err := web.Serve(guarded, server, &web.FlagConfig{WebConfigFile: &file}, slog.New(log))
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("remote write: %w", err)
	})
	parts.Go(func() error { httpserve.StopWith(ctx, server, l); return nil })
	parts.Go(func() error { s.watchSilence(ctx); return nil })
	return parts.Wait()
}

// watchSilence reports silent subscriptions regularly until the context ends.
func (s *Source) watchSilence(ctx context.Context) {
	const ticks = 6 // per silenceReported
	ticker := time.NewTicker(silenceReported / ticks)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.reportSilence(n%ticks == 0)
		}
	}
}

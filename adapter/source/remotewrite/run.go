package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/sync/errgroup"
)

// Times that a sender may take. A body of the greatest size arrives in time at 3 Mbit/s.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 5 * time.Minute // senders pause no longer where metrics are fresh enough to be of use
	stopTimeout   = 5 * time.Second
)

// Validate tells why Run could not serve as o says, with an *OptionError.
func (o Options) Validate() error { return o.checkAccess() }

// Run serves until the context ends or serving fails.
func (s *Source) Run(ctx context.Context) error {
	if err := s.options.Validate(); err != nil {
		return fmt.Errorf("remote write: %w", err)
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("remote write: %w", &OptionError{"Address", s.options.Address, "one to listen on", err})
	}
	return s.serve(ctx, l)
}

// serve serves on a listener, which it closes.
func (s *Source) serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug),
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error {
		file := s.options.WebConfigFile
		err := web.Serve(l, server, &web.FlagConfig{WebConfigFile: &file}, s.options.Logger)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("remote write: %w", err)
	})
	parts.Go(func() error { return stopWith(ctx, server, l) })
	parts.Go(func() error { s.listenOn(ctx); return nil })
	return parts.Wait()
}

// stopWith ends a server with the context, after the requests that are under way if they are quick.
func stopWith(ctx context.Context, server *http.Server, l net.Listener) error {
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if server.Shutdown(ending) != nil {
		server.Close()
	}
	l.Close() // of a server that has not begun
	return nil
}

// listenOn looks for subscriptions that hear nothing, every now and then, until the context ends.
func (s *Source) listenOn(ctx context.Context) {
	const ticks = 6 // in the time after which silence is reported
	ticker := time.NewTicker(troubleAfter / ticks)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.listen(n%ticks == 0)
		}
	}
}
